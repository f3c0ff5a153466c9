"""Devices join and, if wanted, leave one after another: the arrival and the departure of the DPFL benchmark."""

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.quantities import Count, Seconds
from edgesim.config import filled
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.forced import Forced
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals
from edgesim.traces.models.options import IfEmpty, Model, refuse_more


class Arrival(Model):
    """Devices join in the order of their ids, without draws. One that would leave before it joins never joins.

    The times are in seconds, or all of them in rounds. Presence in seconds has no slots: where nobody is there, the
    server waits for the next device, none is forced and nothing is counted.
    """

    at_start: Count = Field(1, ge=0)
    """Number of devices available from the start."""
    join_every_s: Seconds | None = Field(None, ge=0)
    """Time between two joins; 60 when absent."""
    leave_from_s: Seconds | None = Field(None, ge=1e-6)
    """Instant at which the first device leaves; if absent, no device leaves."""
    leave_every_s: Seconds | None = Field(None, ge=0)
    """Time between two leaves; 60 when absent."""
    join_from_s: Seconds | None = Field(None, ge=0)
    """Instant of the first join; ``join_every_s`` when absent."""
    join_at_once: Count | None = Field(None, ge=1)
    """How many devices join together; 1 when absent."""
    leave_at_once: Count | None = Field(None, ge=1)
    """How many devices leave together; 1 when absent."""
    leave_first: Literal["lowest", "highest"] | None = None
    """Which ids leave first; ``lowest`` when absent."""
    join_after_rounds: Count | None = Field(None, ge=0)
    """Rounds before the first join; ``join_every_rounds`` when absent."""
    join_every_rounds: Count | None = Field(None, ge=0)
    """Rounds between two joins; 10 when absent."""
    leave_after_rounds: Count | None = Field(None, ge=1)
    """Rounds before the first device leaves; if absent, no device leaves."""
    leave_every_rounds: Count | None = Field(None, ge=0)
    """Rounds between two leaves; 10 when absent."""
    if_empty: IfEmpty | None = None
    """Fate of a round in which nobody is available: ``force`` or ``wait``, as in `Slotted`. Only for
    times in rounds, since those in seconds have no slots."""

    @property
    def _in_rounds(self) -> list[str]:
        """The keys given that are in rounds."""
        return [key for key in type(self).model_fields if key.endswith("_rounds") and getattr(self, key) is not None]

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        seconds = [key for key in type(self).model_fields if key.endswith("_s") and getattr(self, key) is not None]
        if seconds and self._in_rounds:
            raise ValueError(f"{seconds[0]} is in seconds and {self._in_rounds[0]} in rounds; remove one of them")
        if self.if_empty is not None and not self._in_rounds:
            raise ValueError("if_empty is for times in rounds, such as join_every_rounds")
        return self

    @override
    def resolved(self, tmax_s: float, has_rounds: bool) -> Self:
        if not self._in_rounds:
            return filled(self, {"join_every_s": 60.0, "leave_every_s": 60.0})
        return filled(self, {"join_every_rounds": 10, "leave_every_rounds": 10} if has_rounds else {})

    @override
    def make(self, device_count: int, streams: Streams) -> Availability:
        """One available period for every device; raises `EdgesimError` for more at the start than there are."""
        refuse_more("at_start", self.at_start, device_count)
        own = self.resolved(0.0, True)
        if self._in_rounds:
            return own._by_rounds(device_count, streams)
        start, end = own._periods(device_count)
        comes = end > start
        forever_s = np.broadcast_to(np.inf, device_count)
        ids = np.arange(device_count, dtype=np.int64)
        return IntervalTable(
            Intervals(ids[comes], start[comes], end[comes], forever_s, "availability"), after_end="absent"
        )

    def _by_rounds(self, device_count: int, streams: Streams) -> ByRounds:
        start, end = self._periods(device_count)

        def in_slot(ids: Integers, slots: Integers) -> Booleans:
            return np.asarray((slots >= start[ids]) & (slots < end[ids]))

        remedy = "raise availability.at_start"
        if self.if_empty == "force":
            return ByRounds(device_count, Forced(device_count, in_slot, streams), remedy)
        last = np.where(np.isfinite(end), end, start).max()
        return ByRounds(device_count, in_slot, remedy, settled_from=float(last))

    def _periods(self, device_count: int) -> tuple[Floats, Floats]:
        """Start and end of each device's period, [devices], in seconds or in rounds."""
        unit = ("after_rounds", "every_rounds") if self._in_rounds else ("from_s", "every_s")
        join, join_every, leave, leave_every = (
            getattr(self, f"{act}_{key}") for act in ("join", "leave") for key in unit
        )
        ids = np.arange(device_count, dtype=np.int64)
        joins = (np.maximum(ids - self.at_start + 1, 0) - 1) // (self.join_at_once or 1)
        start = (joins + 1) * float(join_every) if join is None else join + joins * float(join_every)
        start[ids < self.at_start] = 0.0
        if leave is None:
            return start, np.full(device_count, np.inf)
        ranks = ids if self.leave_first != "highest" else ids[::-1]
        return start, np.asarray(leave + ranks // (self.leave_at_once or 1) * float(leave_every))
