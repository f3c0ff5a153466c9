"""Availability that changes only at the edges of slots, each slot a function of device and slot number."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from edgesim.arrays import Booleans, Floats, Integers
from edgesim.errors import EdgesimError

SLOT_LIMIT = 100_000
"""How many slots ahead a change is searched for before the search is given up."""

_AT_ONCE = 2**18
"""Most draws evaluated at once while searching for the ends of stays, which bounds the memory."""


@dataclass(frozen=True)
class Slots:
    """The `Availability` of all models that decide for each device and slot, with slots of ``slot_s`` seconds."""

    device_count: int
    slot_s: float
    in_slot: Callable[[Integers, Integers], Booleans]
    """Whether devices, [n], are available in slots, [n]; a pure function."""
    remedy: str
    """Advice for an error message when too few devices are ever available."""

    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """Whether each device is available in the slot of ``t_s``, a scalar or [n]; [n]."""
        return self.in_slot(ids, np.broadcast_to(self._slot(t_s), len(ids)))

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
        staying, ahead = np.flatnonzero(here & (slot < last)), 1
        while len(staying):
            ahead = max(1, min(ahead, _AT_ONCE // len(staying), int((last - slot)[staying].max())))
            block = slot[staying, np.newaxis] + np.arange(1, ahead + 1)
            there = self.in_slot(np.repeat(ids[staying], ahead), block.ravel()).reshape(block.shape)
            there |= block > last[staying, np.newaxis]
            gone = ~there.all(axis=1)
            until_s[staying[gone]] = block[gone, np.argmin(there[gone], axis=1)] * self.slot_s
            slot[staying] += ahead
            staying = staying[~gone & (slot[staying] < last[staying])]
            ahead *= 2
        return until_s

    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """First instant >= ``t_s`` (a scalar or [n]) at which each device is available, [n].

        Raises `EdgesimError` for a device that is not available within `SLOT_LIMIT` slots.
        """
        when_s = np.broadcast_to(np.asarray(t_s, dtype=np.float64), len(ids)).copy()
        slot = np.broadcast_to(self._slot(t_s), len(ids)).copy()
        away = np.flatnonzero(~self.in_slot(ids, slot))
        for _ in range(SLOT_LIMIT):
            if not len(away):
                return when_s
            slot[away] += 1
            when_s[away] = slot[away] * self.slot_s
            away = away[~self.in_slot(ids[away], slot[away])]
        raise self._never(f"device {ids[away[0]]} is", float(np.min(t_s)))

    def next_time_with(self, count: int, t_s: float) -> float:
        """As `Availability` says, slot by slot; raises `EdgesimError` after `SLOT_LIMIT` slots."""
        if count > self.device_count:
            return np.inf
        ids = np.arange(self.device_count)
        first = int(self._slot(t_s))
        for slot in range(first, first + SLOT_LIMIT):
            if np.count_nonzero(self.in_slot(ids, np.broadcast_to(np.int64(slot), len(ids)))) >= count:
                return t_s if slot == first else slot * self.slot_s
        raise self._never(f"{count} of {self.device_count} devices at once are", t_s)

    def next_change(self, t_s: float) -> float:
        """The start of the next slot."""
        return (int(self._slot(t_s)) + 1) * self.slot_s

    def slots_begun(self, t_s: float) -> int:
        """How many slots have begun before ``t_s``."""
        return int(self._slot(np.nextafter(t_s, -np.inf))) + 1

    def empty_slots(self, t_s: float, until_s: float) -> int:
        """How many slots from that of ``t_s`` to the one before that of ``until_s`` have nobody available."""
        ids = np.arange(self.device_count)
        slots = range(int(self._slot(t_s)), int(self._slot(until_s)))
        return sum(not self.in_slot(ids, np.broadcast_to(np.int64(slot), len(ids))).any() for slot in slots)

    def _slot(self, t_s: ArrayLike) -> Integers:
        """The slot of each instant; slot k begins exactly at the floating-point product k ``slot_s``."""
        instants_s = np.asarray(t_s, dtype=np.float64)
        slots: Integers = np.floor(instants_s / self.slot_s).astype(np.int64)
        # The division is rounded, and may give the neighbouring slot for an instant at an edge.
        slots = slots - (slots * self.slot_s > instants_s)
        return np.asarray(slots + ((slots + 1) * self.slot_s <= instants_s))

    def _never(self, what: str, t_s: float) -> EdgesimError:
        return EdgesimError(
            f"availability: {what} never available in {SLOT_LIMIT} slots from {t_s:g} s on; "
            f"{self.remedy} or lower round.min_candidates"
        )
