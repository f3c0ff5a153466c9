"""Devices join one after another and, if wanted, leave one after another."""

import numpy as np
from pydantic import Field

from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals
from edgesim.traces.models.options import Model


class Arrival(Model):
    """In the order of their ids; no draws. Who would leave before it joins never comes."""

    at_start: int = Field(1, ge=0)
    """Devices that are there from the beginning; the next one joins ``join_every_s`` later, and so on."""
    join_every_s: float = Field(60.0, ge=0)
    leave_from_s: float | None = Field(None, gt=0)
    """Instant at which the first device leaves; nobody does when absent."""
    leave_every_s: float = Field(60.0, ge=0)

    def make(self, device_count: int, streams: Streams) -> Availability:
        """One stretch of every device."""
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
