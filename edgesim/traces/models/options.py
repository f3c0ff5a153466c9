"""What all availability model have in common."""

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from edgesim.arrays import Booleans, Integers
from edgesim.config import Section
from edgesim.errors import EdgesimError
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.interval_table import AfterEnd, IntervalTable
from edgesim.traces.intervals import Intervals, renumbered
from edgesim.traces.slots import Slots

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S


class Model(Section):
    """A model's own keys of ``[availability]``; adding a model is a file with one of these and its registry's line."""

    def resolved(self, tmax_s: float, has_rounds: bool) -> Self:
        """The same with what hangs on the protocol written out: the deadline, and whether there are rounds at all.

        Raises `EdgesimError`.
        """
        return self

    def make(self, device_count: int, streams: Streams) -> Availability:
        """The model for so many devices; raises `EdgesimError`."""
        raise NotImplementedError


class Slotted(Model):
    """A model whose slots are rounds, or lengths of time."""

    slots: Literal["rounds"] | None = None
    """A slot is a round: what is drawn for it holds from its start to its end. The default of runs with rounds."""
    slot_s: float | None = Field(None, gt=0)
    """Length of a slot that is a length of time; without rounds the deadline when absent."""

    @model_validator(mode="after")
    def _one_kind_of_slot(self) -> Self:
        if self.slots is not None and self.slot_s is not None:
            raise ValueError("slot_s is the length of slots in seconds, not of slots = 'rounds'; remove one of them")
        return self

    def in_slot(self, ids: Integers, slots: Integers, streams: Streams) -> Booleans:
        """Whether each device is there in its slot, counted from 0, [n]."""
        raise NotImplementedError

    def remedy(self) -> str:
        """What to change when too few devices are ever there."""
        raise NotImplementedError

    def resolved(self, tmax_s: float, has_rounds: bool) -> Self:
        """With its slots written out; raises `EdgesimError` for slots by rounds that do not exist."""
        if self.slots is not None and not has_rounds:
            raise EdgesimError(
                "availability.slots = 'rounds' is for round.protocol = 'synchronous', which alone has rounds; give "
                "availability.slot_s, the length of a slot in s"
            )
        if self.slots is not None or self.slot_s is not None:
            return self
        return self.model_copy(update={"slots": "rounds"} if has_rounds else {"slot_s": tmax_s})

    def make(self, device_count: int, streams: Streams) -> Availability:
        """Availability in slots of either kind, drawn alike."""

        def in_slot(ids: Integers, slots: Integers) -> Booleans:
            return self.in_slot(ids, slots, streams)

        if self.slots is not None:
            return ByRounds(device_count, in_slot, self.remedy())
        return Slots(device_count, slot_length_s(self.slot_s), in_slot, self.remedy())


class Repeated(Model):
    """A model that lays down a table of intervals of finite length."""

    after_end: AfterEnd = "wrap"
    """What follows the table's end: it begins again, everyone is absent, or the run may not come there."""
    order: Literal["given", "rising", "falling"] = "given"
    """How devices are numbered: as they come, or by their time online, so that a partition whose skew goes by the
    number (FedDance's figs. 4b and 5) goes with or against availability. Profile and links with the keys of a recording
    go along; any but ``given`` parts device k from row k of those without keys."""

    def intervals(self, device_count: int, streams: Streams) -> Intervals:
        """The periods of so many devices."""
        raise NotImplementedError

    def make(self, device_count: int, streams: Streams) -> Availability:
        """The table of the intervals."""
        intervals = self.intervals(device_count, streams)
        if self.order != "given":
            share = intervals.online_s / intervals.length_s
            intervals = renumbered(intervals, np.argsort(share if self.order == "rising" else -share, kind="stable"))
        return IntervalTable(intervals, self.after_end)


def slot_length_s(slot_s: float | None) -> float:
    """The length of a slot in s; raises `EdgesimError` where it was left open."""
    if slot_s is None:
        raise EdgesimError("availability.slot_s: expected the length of a slot in s; resolve the config or give one")
    return slot_s
