"""Devices join one after another and, if wanted, leave one after another."""

import numpy as np
from pydantic import Field

from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals
from edgesim.traces.models.options import Model


class Arrival(Model):
    """Devices join and leave in the order of their ids; no draws. One that would leave before it joins never joins."""

    at_start: int = Field(1, ge=0)
    """Number of devices available from the start; each further one joins ``join_every_s`` after the one before."""
    join_every_s: float = Field(60.0, ge=0)
    leave_from_s: float | None = Field(None, gt=0)
    """Instant at which the first device leaves; if absent, no device leaves."""
    leave_every_s: float = Field(60.0, ge=0)

    def make(self, device_count: int, streams: Streams) -> Availability:
        """One available period for every device."""
        ids = np.arange(device_count, dtype=np.int64)
        start_s = np.maximum(ids - self.at_start + 1, 0) * self.join_every_s
        end_s = np.full(device_count, np.inf)
        if self.leave_from_s is not None:
            end_s = self.leave_from_s + ids * self.leave_every_s
        comes = end_s > start_s
        forever_s = np.broadcast_to(np.inf, device_count)
        return IntervalTable(
            Intervals(ids[comes], start_s[comes], end_s[comes], forever_s, "availability"), after_end="absent"
        )
