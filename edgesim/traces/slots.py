"""Availability that changes only at the edges of slots, each slot a function of device and slot number."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgesim.errors import EdgesimError

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

SLOT_LIMIT = 100_000
"""Slots that are looked at ahead before the search is given up."""

_SLOTS_AHEAD = 1000
"""How far a stay is followed; one that is longer is taken to have no end."""

_EDGE_SLOTS = 1e-6
"""A clock this close before a slot's edge is taken to be at the edge."""


@dataclass(frozen=True)
class Slots:
    """Who is there in each slot; `Availability` for every such model."""

    device_count: int
    slot_s: float
    in_slot: Callable[[Integers, Integers], Booleans]
    """Whether devices, [n], are there in slots, [n]; a pure function."""
    remedy: str
    """What to change when too few are ever there."""

    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """Whether each device is available in the slot of ``t_s``, a scalar or [n]; [n]."""
        return self.in_slot(ids, np.broadcast_to(self._slot(t_s), len(ids)))

    def available_until(self, ids: Integers, t_s: ArrayLike, horizon_s: float) -> Floats:
        """End of each device's run of available slots, [n]; as `Availability` says, at most 1,000 slots ahead."""
        until_s = np.full(len(ids), np.inf)
        slot = np.broadcast_to(self._slot(t_s), len(ids)).copy()
        here = self.in_slot(ids, slot)
        until_s[~here] = np.broadcast_to(np.asarray(t_s, dtype=np.float64), len(ids))[~here]
        last = slot.max(initial=0) + _SLOTS_AHEAD
        if np.isfinite(horizon_s):
            last = min(last, int(self._slot(horizon_s - 2 * _EDGE_SLOTS * self.slot_s)))
        staying = np.flatnonzero(here & (slot < last))
        while len(staying):
            slot[staying] += 1
            here = self.in_slot(ids[staying], slot[staying])
            gone = staying[~here]
            until_s[gone] = slot[gone] * self.slot_s
            staying = staying[here & (slot[staying] < last)]
        return until_s

    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """First instant >= ``t_s`` (a scalar or [n]) at which each device is available, [n].

        Raises `EdgesimError` for a device that is not there in `SLOT_LIMIT` slots.
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
        raise self._never(f"device {ids[away[0]]}", float(np.min(t_s)))

    def next_time_with(self, count: int, t_s: float) -> float:
        """As `Availability` says, slot by slot; raises `EdgesimError` after `SLOT_LIMIT` slots."""
        if count > self.device_count:
            return np.inf
        ids = np.arange(self.device_count)
        first = int(self._slot(t_s))
        for slot in range(first, first + SLOT_LIMIT):
            if np.count_nonzero(self.in_slot(ids, np.broadcast_to(np.int64(slot), len(ids)))) >= count:
                return t_s if slot == first else slot * self.slot_s
        raise self._never(f"{count} of {self.device_count} devices at once", t_s)

    def _slot(self, t_s: ArrayLike) -> Integers:
        slots: Integers = np.floor(np.asarray(t_s, dtype=np.float64) / self.slot_s + _EDGE_SLOTS).astype(np.int64)
        return slots

    def _never(self, who: str, t_s: float) -> EdgesimError:
        return EdgesimError(
            f"availability: in {SLOT_LIMIT} slots from {t_s:g} s on, never {who}; "
            f"{self.remedy} or lower round.min_candidates"
        )
