"""The radio: path loss, shadowing, fading, Shannon rate, least bandwidth and the sharing of a band."""

from edgesim.channels.allocators import ALLOCATORS, Request
from edgesim.channels.allocators.equal_finish import equal_finish_s
from edgesim.channels.bandwidth import min_bandwidth_hz, rate_bps
from edgesim.channels.capacity import CapacityTable
from edgesim.channels.environment import (
    Environment,
    RecordedEnvironment,
    Shadowing,
    lasting_power_gain,
    line_of_sight,
    load_environment,
    mean_power_gain,
)
from edgesim.channels.fading import Fading, power_factor
from edgesim.channels.link import Link, OwnLinks, RecordedLink, ShannonLink

__all__ = [
    "ALLOCATORS",
    "CapacityTable",
    "Environment",
    "Fading",
    "Link",
    "OwnLinks",
    "RecordedEnvironment",
    "RecordedLink",
    "Request",
    "Shadowing",
    "ShannonLink",
    "equal_finish_s",
    "lasting_power_gain",
    "line_of_sight",
    "load_environment",
    "mean_power_gain",
    "min_bandwidth_hz",
    "power_factor",
    "rate_bps",
]
