"""Availability drawn by rounds: a draw holds from the start of its round to the start of the next."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.traces.availability import Availability, KnownSlots


@dataclass
class ByRounds(Availability):
    """Which devices are available in each round; an `Availability` that the server informs when a slot begins.

    A slot is a round, with the time until the next one opens, or a wait of the server for enough devices; slots are
    numbered from 0, so slot r - 1 is round r as long as the server has not waited. The run decides how long a slot
    lasts: this object knows only the slots that have begun, and takes the last of them to last for ever.
    """

    device_count: int
    in_slot: Callable[[Integers, Integers], Booleans]
    """Whether devices, [n], are available in slots, [n]; a pure function."""
    remedy: str
    """Advice for an error message when too few devices are ever available."""
    settled_from: float = np.inf
    """Slot from which on nobody comes or leaves; ``inf`` if there is none."""
    known: KnownSlots | None = None
    """The known slots of a matrix that ends; None if all slots are known."""
    starts_s: "array[float]" = field(default_factory=lambda: array("d"))
    """Start of each slot that has begun, in s, ascending; a type that NumPy searches without a copy."""

    @override
    def begin_slot(self, t_s: float) -> None:
        """Note that a round, or a wait for enough devices, begins at ``t_s``.

        Raises `EdgesimError` if the slot is not known.
        """
        if self.known is not None:
            self.known.need(len(self.starts_s) + 1)
        self.starts_s.append(t_s)

    @override
    def is_settled(self, count: int) -> bool:
        """Whether fewer than ``count`` devices are available in the last slot that has begun and in all later ones."""
        settled = len(self.starts_s) > self.settled_from
        return settled and np.isinf(self.next_time_with(count, self.starts_s[-1]))

    def slots_begun(self, t_s: float) -> int:
        """Number of slots that have begun by ``t_s``."""
        return int(np.searchsorted(self.starts_s, t_s, "right"))

    @override
    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """Whether each device is available in the slot of ``t_s``, a scalar or [n]; [n]."""
        return self.in_slot(ids, self._slot(ids, t_s))

    @override
    def available_until(self, ids: Integers, t_s: ArrayLike, horizon_s: float = np.inf) -> Floats:
        """End of each device's stay, [n], as `Availability` says; ``inf`` for a stay in the last slot."""
        until_s = self._first(ids, t_s, False)
        return np.where((until_s > np.asarray(t_s)) & (until_s >= horizon_s), np.inf, until_s)

    @override
    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """First instant >= ``t_s`` at which each device is available, [n]; ``inf`` if in no slot that has begun."""
        return self._first(ids, t_s, True)

    @override
    def next_time_with(self, count: int, t_s: float) -> float:
        """``t_s`` if at least ``count`` devices are available in its slot, else ``inf``."""
        present = self.available(np.arange(self.device_count), t_s)
        return t_s if np.count_nonzero(present) >= count else np.inf

    @override
    def next_change(self, t_s: float) -> float:
        """``inf``: the start of the next slot is not known."""
        return np.inf

    def _slot(self, ids: Integers, t_s: ArrayLike) -> Integers:
        slots = np.searchsorted(self.starts_s, np.asarray(t_s, dtype=np.float64), "right") - 1
        return np.broadcast_to(slots, len(ids))

    def _first(self, ids: Integers, t_s: ArrayLike, there: bool) -> Floats:
        """First instant >= ``t_s`` at which each device is available (``there``), or is not, [n]; ``inf`` if none."""
        slots = self._slot(ids, t_s).copy()
        first_s = np.broadcast_to(np.asarray(t_s, dtype=np.float64), len(ids)).copy()
        left = np.flatnonzero(self.in_slot(ids, slots) != there)
        while len(left):
            slots[left] += 1
            begun = slots[left] < len(self.starts_s)
            first_s[left[~begun]] = np.inf
            left = left[begun]
            first_s[left] = np.asarray(self.starts_s)[slots[left]]
            left = left[self.in_slot(ids[left], slots[left]) != there]
        return first_s
