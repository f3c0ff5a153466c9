"""The radio: path loss, shadowing, fading, Shannon rate, least bandwidth and the sharing of a band."""

from edgesim.channels.allocators import ALLOCATORS, Request
from edgesim.channels.allocators.equal_finish import allocate as equal_finish
from edgesim.channels.allocators.equal_finish import equal_finish_s
from edgesim.channels.bandwidth import min_bandwidth_hz, rate_bps
from edgesim.channels.capacity import CapacityTable, CapacityTables
from edgesim.channels.environment import (
    Environment,
    RecordedEnvironment,
    Shadowing,
    lasting_power_gain,
    line_of_sight,
    load_environment,
    mean_power_gain,
)
from edgesim.channels.fading import Fading, outage_factor, power_factor
from edgesim.channels.link import Link, OwnLinks, RecordedLink, RecordedOwnLinks, ShannonLink, SharedLink
from edgesim.channels.link_file import LinkRows, load_links, read_links, write_links

__all__ = [
    "ALLOCATORS",
    "CapacityTable",
    "CapacityTables",
    "Environment",
    "Fading",
    "Link",
    "LinkRows",
    "OwnLinks",
    "RecordedEnvironment",
    "RecordedLink",
    "RecordedOwnLinks",
    "Request",
    "Shadowing",
    "ShannonLink",
    "SharedLink",
    "equal_finish",
    "equal_finish_s",
    "lasting_power_gain",
    "line_of_sight",
    "load_environment",
    "load_links",
    "mean_power_gain",
    "min_bandwidth_hz",
    "outage_factor",
    "power_factor",
    "rate_bps",
    "read_links",
    "write_links",
]
