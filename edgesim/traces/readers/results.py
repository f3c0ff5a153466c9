"""What a recording turns into."""

from dataclasses import dataclass, field

from edgesim.channels.capacity_file import Rows
from edgesim.channels.link_file import LinkRows
from edgesim.devices.profile import Profile
from edgesim.traces.intervals import Intervals


@dataclass(frozen=True)
class RecordedAvailability:
    """Who was available when, and when anybody looked."""

    available: Intervals
    observed: Intervals | None = None
    """Periods in which each device was observed; all of the recording when absent."""
    cut: int = 0
    """Periods that the original holds, of which all or the last part lies beyond the end of its device's recording."""


@dataclass(frozen=True)
class Capacity:
    """What links carried."""

    tables: dict[str, Rows]
    """Times and capacities of each trace; they hold up to the next row."""
    ends_s: dict[str, float] = field(default_factory=dict)
    """Where the last row of each trace ends; not known of one that is absent."""


Recorded = RecordedAvailability | Capacity | LinkRows | Profile
