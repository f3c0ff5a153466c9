"""Groups of devices are available in turn; each turn may overlap with the next."""

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from edgesim.streams import Streams
from edgesim.traces.intervals import Intervals, joined
from edgesim.traces.models.options import Repeated


class RoundRobin(Repeated):
    """Device k belongs to group k mod ``groups``; no draws."""

    groups: int = Field(5, ge=1)
    turn_s: float = Field(600.0, gt=0)
    """Time from the start of one group's turn to the start of the next one's."""
    overlap_s: float = Field(0.0, ge=0)
    """How long a group stays available in the turn of the next."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.overlap_s > (self.groups - 1) * self.turn_s:
            raise ValueError(
                f"overlap_s ({self.overlap_s:g}) must not be above the turns of the other groups, "
                f"{(self.groups - 1) * self.turn_s:g} s"
            )
        return self

    def intervals(self, device_count: int, streams: Streams) -> Intervals:
        """One cycle of turns; available time that passes its end continues at its start."""
        ids = np.arange(device_count, dtype=np.int64)
        cycle_s = self.groups * self.turn_s
        start_s = (ids % self.groups) * self.turn_s
        device = np.concatenate([ids, ids])
        starts_s = np.concatenate([start_s, start_s - cycle_s])
        return joined(device, starts_s, starts_s + self.turn_s + self.overlap_s, cycle_s, device_count, "availability")
