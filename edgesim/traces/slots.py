"""Availability that changes only at the edges of slots, each slot a function of device and slot number."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.traces.availability import Availability
from edgesim.traces.search import DRAW_LIMIT, Search

SLOT_LIMIT = 100_000
"""Slots ahead in which the end of a stay is searched for."""

_AT_ONCE = 2**18
"""Most draws evaluated at once in a search, which bounds the memory."""


@dataclass(eq=False)
class Slots(Availability):
    """The `Availability` of all models that decide for each device and slot, with slots of ``slot_s`` seconds."""

    device_count: int
    slot_s: float
    in_slot: Callable[[Integers, Integers], Booleans]
    """Whether devices, [n], are available in slots, [n]; a pure function."""
    remedy: str
    """Advice for an error message when too few devices are ever available."""
    skip: Callable[[Integers, Integers], Integers] | None = None
    """The first slot at or after a given one, [n], in which each device, [n], has a chance; None if it always has."""
    search: Search = field(default_factory=Search)
    name: str = "availability"
    known_until_s: float = np.inf

    @property
    @override
    def slots(self) -> "Slots":
        return self

    @property
    @override
    def changes_every(self) -> tuple[str, float]:
        return "slots that change", self.slot_s

    @override
    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """Whether each device is available in the slot of ``t_s``, a scalar or [n]; [n]."""
        return self.in_slot(ids, np.broadcast_to(self._slot(t_s), len(ids)))

    @override
    def available_until(self, ids: Integers, t_s: ArrayLike, horizon_s: float = np.inf) -> Floats:
        """End of each device's run of available slots, [n]; as `Availability` says.

        ``inf`` also for a stay of more than `SLOT_LIMIT` slots.
        """
        slot = np.broadcast_to(self._slot(t_s), len(ids)).copy()
        here = self.in_slot(ids, slot)
        until_s = np.where(here, np.inf, np.asarray(t_s, dtype=np.float64))
        # The limit counts from each device's own slot, so that answers do not depend on the other devices in ``ids``.
        last = slot + SLOT_LIMIT
        if np.isfinite(horizon_s):
            last = np.minimum(last, self._slot(np.nextafter(horizon_s, -np.inf)))
        staying = np.flatnonzero(here & (slot < last))
        slot += 1
        for first_s, ended in self._searched(staying, ids, slot, last, there=False):
            until_s[ended] = first_s
        return until_s

    @override
    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """First instant >= ``t_s`` (a scalar or [n]) at which each device is available, [n].

        inf if that is not within ``search.limit_s`` or the search was given up, after `DRAW_LIMIT` draws; an instant
        behind ``search.until_s`` if it is not before that.
        """
        when_s = np.broadcast_to(np.asarray(t_s, dtype=np.float64), len(ids)).copy()
        slot = np.broadcast_to(self._slot(t_s), len(ids)).copy()
        away = np.flatnonzero(~self.in_slot(ids, slot))
        last = np.broadcast_to(self._slot(self.search.end_s(t_s)), len(ids))
        when_s[away] = np.broadcast_to(self.search.nothing_s(t_s), len(ids))[away]
        slot += 1
        for first_s, back in self._searched(away, ids, slot, last, there=True):
            when_s[back] = first_s
        return when_s

    def _searched(
        self, open_: Integers, ids: Integers, slot: Integers, last: Integers, there: bool
    ) -> Iterator[tuple[Floats, Integers]]:
        """Yield starts of the first slots, up to ``last`` [n], in which devices are available (``there``) or not, [k].

        Each comes with the positions [k] in ``ids`` [n] of its devices. The search is for the positions ``open_`` and
        begins at ``slot`` [n], which it changes. A search that is given up answers inf for those that are left.
        """
        ahead, looked_at = 1, 0
        step = self.search.begin("a device available" if there else "the end of a stay")
        while len(open_):
            if there and self.skip is not None:
                slot[open_] = self.skip(ids[open_], slot[open_])
            open_ = open_[slot[open_] <= last[open_]]
            if not len(open_):
                return
            ahead = max(1, min(ahead, _AT_ONCE // len(open_), int((last - slot)[open_].max()) + 1))
            block = slot[open_, np.newaxis] + np.arange(ahead)
            matches = self.in_slot(np.repeat(ids[open_], ahead), block.ravel()).reshape(block.shape) == there
            matches &= block <= last[open_, np.newaxis]
            hit = matches.any(axis=1)
            yield block[hit, np.argmax(matches[hit], axis=1)] * self.slot_s, open_[hit]
            slot[open_] += ahead
            looked_at += block.size
            self.search.drawn += block.size
            open_ = open_[~hit]
            if there and looked_at > DRAW_LIMIT and len(open_):
                self.search.give_up(int(slot[open_].min()) * self.slot_s, self.remedy)
                yield np.full(len(open_), np.inf), open_
                return
            ahead *= 2
            step(float(block[0, -1]) * self.slot_s)

    @override
    def next_time_with(self, count: int, t_s: float) -> float:
        """First instant >= ``t_s`` with at least ``count`` devices available.

        inf, or an instant behind the run's end, in the same cases as in `next_available`.
        """
        if count > self.device_count:
            return np.inf
        first, step, looked_at = int(self._slot(t_s)), self.search.begin(f"{count} devices available"), 0
        for begin, there in self._blocks(first, int(self._slot(self.search.end_s(t_s))) + 1, count):
            enough = np.flatnonzero(there.sum(axis=1) >= count)
            if len(enough):
                slot = begin + int(enough[0])
                return t_s if slot == first else slot * self.slot_s
            looked_at += there.size
            if looked_at > DRAW_LIMIT:
                self.search.give_up((begin + len(there)) * self.slot_s, self.remedy)
                return np.inf
            step(begin * self.slot_s)
        return float(self.search.nothing_s(t_s))

    @override
    def next_change(self, t_s: float) -> float:
        """The start of the next slot."""
        return (int(self._slot(t_s)) + 1) * self.slot_s

    def slots_begun(self, t_s: float) -> int:
        """Number of slots that have begun before ``t_s``."""
        return int(self._slot(np.nextafter(t_s, -np.inf))) + 1

    def empty_slots(self, t_s: float, until_s: float) -> int | None:
        """Number of slots with nobody available, from the slot of ``t_s`` to the one before that of ``until_s``.

        None for more slots than can be looked at.
        """
        first, end = int(self._slot(t_s)), int(self._slot(until_s))
        empty, looked_at = end - first, 0
        for _, there in self._blocks(first, end, 1):
            empty -= int(there.any(axis=1).sum())
            looked_at += there.size
            # Whatever one search has passed can be counted.
            if looked_at > 2 * DRAW_LIMIT:
                return None
        return empty

    def _blocks(self, slot: int, end: int, count: int) -> Iterator[tuple[int, Booleans]]:
        """Yield first slots, and the availability in the slots from each on, [slots, devices], up to ``end``.

        Slots in which fewer than ``count`` devices have a chance may be left out.
        """
        ids, ahead = np.arange(self.device_count), 1
        while slot < end:
            if self.skip is not None:
                slot = int(np.partition(self.skip(ids, np.full(len(ids), slot)), count - 1)[count - 1])
            ahead = max(1, min(ahead, _AT_ONCE // len(ids), end - slot))
            if slot < end:
                slots = np.repeat(np.arange(slot, slot + ahead), len(ids))
                yield slot, self.in_slot(np.tile(ids, ahead), slots).reshape(ahead, len(ids))
            slot, ahead = slot + ahead, 2 * ahead

    def _slot(self, t_s: ArrayLike) -> Integers:
        """The slot of each instant; slot k begins exactly at the floating-point product k ``slot_s``."""
        instants_s = np.asarray(t_s, dtype=np.float64)
        slots: Integers = np.floor(instants_s / self.slot_s).astype(np.int64)
        # The division is rounded, and may give the neighbouring slot for an instant at an edge.
        slots = slots - (slots * self.slot_s > instants_s)
        return np.asarray(slots + ((slots + 1) * self.slot_s <= instants_s))
