"""The base classes of the availability models' options."""

from collections.abc import Callable
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.needs import GIVEN, Rule
from edgesim.base.quantities import Seconds
from edgesim.config import Section
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.forced import Forced
from edgesim.traces.interval_table import AfterEnd, IntervalTable
from edgesim.traces.intervals import Intervals, renumbered
from edgesim.traces.slots import Slots

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S

IfEmpty = Literal["force", "wait"]

_IN_ROUNDS = (
    "turn_rounds", "day_rounds", "join_after_rounds", "join_every_rounds", "leave_after_rounds", "leave_every_rounds",
)  # fmt: skip


class Model(Section):
    """A model's own keys of ``[availability]``; to add a model, write a subclass in a file and register it."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule({"availability.slots": "rounds"}, {}, features=("rounds",)),
        *(Rule({f"availability.{key}": GIVEN}, {}, features=("rounds",)) for key in _IN_ROUNDS),
    )
    """Rules that the model's options and other keys of the config must meet together."""

    def resolved(self, tmax_s: float, has_rounds: bool) -> Self:
        """The options with the defaults that depend on the deadline, or on whether the protocol has rounds, filled in.

        Raises `EdgesimError`.
        """
        return self

    def make(self, device_count: int, streams: Streams) -> Availability:
        """The availability of ``device_count`` devices; raises `EdgesimError`."""
        raise NotImplementedError


class Slotted(Model):
    """A model whose slots are rounds, or lengths of time."""

    goes_with: ClassVar[tuple[Rule, ...]] = (Rule({"slots": "rounds"}, {"slot_s": None}),)

    slots: Literal["rounds"] | None = None
    """``rounds``: a slot is a round. The default of runs with rounds."""
    slot_s: Seconds | None = Field(None, ge=1e-6)
    """Length of slots that are lengths of time; the default of runs without rounds is ``round.tmax_s``."""
    if_empty: IfEmpty | None = None
    """Fate of a slot in which nobody is available: one device, drawn uniformly, is made available (``force``),
    or the slot passes and the server waits (``wait``, also when absent)."""

    def law(self, device_count: int, streams: Streams) -> Callable[[Integers, Integers], Booleans]:
        """A function of devices, [n], and slots, [n], from 0: whether each device is available in its slot, [n]."""
        raise NotImplementedError

    def remedy(self) -> str:
        """Advice for an error message when too few devices are ever available."""
        raise NotImplementedError

    @override
    def resolved(self, tmax_s: float, has_rounds: bool) -> Self:
        if self.slots is not None or self.slot_s is not None:
            return self
        return self.model_copy(update={"slots": "rounds"} if has_rounds else {"slot_s": tmax_s})

    @override
    def make(self, device_count: int, streams: Streams) -> Availability:
        """Availability in slots of either kind, from the same draws."""
        law = self.law(device_count, streams)
        if self.if_empty == "force":
            law = Forced(device_count, law, streams)
        if self.slots is not None:
            return ByRounds(device_count, law, self.remedy())
        return Slots(device_count, slot_length_s(self.slot_s), law, self.remedy())


class Repeated(Model):
    """A model that makes a table of intervals of finite length, which may be repeated."""

    after_end: AfterEnd = "wrap"
    """Rule for later time than the table's: repetition (``wrap``), all devices are absent, or an error (``raise``)."""
    order: Literal["given", "rising", "falling"] = "given"
    """How devices are numbered: as given, or by rising or falling time online, so that a partition whose skew depends
    on the number (FedDance's figs. 4b and 5) correlates with availability. Profiles and links with keys follow the new
    numbers; those without keys do not: their row k is then another device than row k of the recording."""

    def intervals(self, device_count: int, streams: Streams) -> Intervals:
        """The available periods of ``device_count`` devices."""
        raise NotImplementedError

    @override
    def make(self, device_count: int, streams: Streams) -> Availability:
        """The table of the intervals, with devices numbered by ``order``."""
        return self.table_of(self.intervals(device_count, streams))

    def table_of(self, intervals: Intervals) -> IntervalTable:
        """The table of some intervals, with devices numbered by ``order``."""
        if self.order != "given":
            share = intervals.online_s / intervals.length_s
            intervals = renumbered(intervals, np.argsort(share if self.order == "rising" else -share, kind="stable"))
        return IntervalTable(intervals, self.after_end)


def slot_length_s(slot_s: float | None) -> float:
    """The length of a slot in s; raises `EdgesimError` if it is None."""
    if slot_s is None:
        raise EdgesimError("availability.slot_s: expected the length of a slot in s; resolve the config or give one")
    return slot_s


def refuse_more(key: str, number: int, device_count: int) -> None:
    """Raise `EdgesimError` for more devices in an option of ``[availability]`` than there are."""
    if number > device_count:
        keys = f"availability.{key}", "devices.count"
        raise EdgesimError(f"{keys[0]} ({number}) must not be above {keys[1]} ({device_count})", *keys)
