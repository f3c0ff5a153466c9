"""The results of the readers."""

from dataclasses import dataclass, field

from edgesim.devices.profile import Profile
from edgesim.mobility.position_file import PositionRows
from edgesim.radio.capacity_file import Rows
from edgesim.radio.link_file import LinkRows
from edgesim.traces.intervals import Intervals


@dataclass(frozen=True)
class RecordedAvailability:
    """Periods in which each device was available, and in which it was observed."""

    available: Intervals
    observed: Intervals | None = None
    """Periods in which each device was observed; None if that is the whole recording."""
    cut: int = 0
    """Number of the original's periods that were cut, or left out, because they pass the end of the recording."""


@dataclass(frozen=True)
class Capacity:
    """Recorded capacities of links."""

    tables: dict[str, Rows]
    """Times and capacities of each trace; they hold up to the next row."""
    ends_s: dict[str, float] = field(default_factory=dict)
    """End of each trace's last row, in s; a trace whose end is not known is left out."""


Recorded = RecordedAvailability | Capacity | LinkRows | Profile | PositionRows
