"""Availability without empty slots: one device is forced into each, as in the DPFL benchmark (``if_empty``)."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from edgesim.base.arrays import Booleans, Integers
from edgesim.streams import Streams

_NOBODY = -1

_AT_ONCE = 2**18
"""Most pairs of device and slot looked at together, which bounds the memory."""

_KEPT = 2**18
"""Slots whose forced devices are remembered, and slots of a call."""

_MOST = 2**27
"""Most pairs of device and slot that are looked at to count the empty slots: some seconds."""


@dataclass(frozen=True)
class Forced:
    """Availability by a law, and of one device, drawn uniformly, in slots that the law leaves empty.

    The law itself does not depend on this: a Markov chain keeps its own state. Draws: stream ``availability-forced``,
    indexed by the slot. Which slots are empty depends on the number of devices.
    """

    device_count: int
    law: Callable[[Integers, Integers], Booleans]
    """Whether devices, [n], are available in slots, [n], by the law."""
    streams: Streams
    _of_slot: dict[int, int] = field(default_factory=dict)
    """Device forced into each slot looked at so far, `_NOBODY` for slots that are not empty."""

    def __call__(self, ids: Integers, slots: Integers) -> Booleans:
        """Whether each device is available in its slot, [n]."""
        there = self.law(ids, slots)
        absent = np.flatnonzero(~there)
        if len(absent):
            there = np.array(there)
            there[absent] = ids[absent] == self._forced(slots[absent])
        return there

    def count(self, slots: int) -> int | None:
        """Number of the slots 0 to ``slots`` - 1 that the law leaves empty; None for too many slots to look at."""
        if slots * self.device_count > _MOST:
            return None
        parts = (np.arange(first, min(first + _KEPT, slots)) for first in range(0, slots, _KEPT))
        return sum(int(np.count_nonzero(self._forced(part) != _NOBODY)) for part in parts)

    def _forced(self, slots: Integers) -> Integers:
        """The device forced in each slot, or `_NOBODY`, [n]."""
        wanted, place = np.unique(slots, return_inverse=True)
        if len(self._of_slot) > _KEPT:
            self._of_slot.clear()
        new = np.array([slot for slot in wanted.tolist() if slot not in self._of_slot], dtype=np.int64)
        size = max(1, _AT_ONCE // self.device_count)
        for first in range(0, len(new), size):
            some = new[first : first + size]
            ids = np.tile(np.arange(self.device_count), len(some))
            there = self.law(ids, np.repeat(some, self.device_count)).reshape(len(some), self.device_count)
            drawn = self.streams.uniform("availability-forced", 0, some) * self.device_count
            forced = np.where(there.any(axis=1), _NOBODY, drawn.astype(np.int64))
            self._of_slot.update(zip(some.tolist(), forced.tolist(), strict=True))
        return np.array([self._of_slot[slot] for slot in wanted.tolist()], dtype=np.int64)[place]
