"""Devices without work: those available now, and the instant at which the next of the others will be."""

import math
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import ClassVar

import numpy as np

from edgesim.base.arrays import Booleans, Integers
from edgesim.devices.battery import Batteries
from edgesim.engine.interruptions import need_progress
from edgesim.traces.availability import Availability


@dataclass
class IdleDevices:
    """Devices without work; a device that is known to be away until an instant is not looked at before then."""

    SAVED: ClassVar = ("looked_at", "away")

    availability: Availability
    batteries: Batteries | None
    looked_at: Booleans
    """Devices without work that may be there, [devices]."""
    away: list[tuple[float, int]] = field(default_factory=list)
    """Return in s and id of each other device without work: a heap, without those that never return."""
    search_s: float = math.inf
    """Longest wait for devices that are away, in s."""

    def begin(self, device: int) -> None:
        """Count a device as at work; it was `there`, and `next_back_s` has not passed it over since."""
        self.looked_at[device] = False

    def end(self, device: int) -> None:
        """Count a device as idle."""
        self.looked_at[device] = True

    def there(self, t_s: float) -> Integers:
        """Devices without work that are available and charged now, ascending."""
        ids = self._candidates(t_s)
        return ids[are_there(self.availability, self.batteries, ids, t_s)]

    def next_back_s(self, t_s: float) -> float:
        """Instant, in s, at which the next idle device that is absent now will be available and charged.

        inf if not within ``search_s``. Until then, none of these devices is looked at again.
        """
        ids = self._candidates(t_s)
        ids = ids[~are_there(self.availability, self.batteries, ids, t_s)]
        self.looked_at[ids] = False
        if self.batteries is None:
            back_s = self.availability.next_available(ids, t_s)
        else:
            # The charge of a resting device is known for all time, so only work changes these answers.
            ready_s, until_s = (span_s[ids] for span_s in self.batteries.ready_s())
            ever = np.isfinite(ready_s)
            ids, until_s = ids[ever], until_s[ever]
            back_s = self.availability.next_available(ids, np.maximum(ready_s[ever], t_s))
            back_s = np.where(back_s <= until_s, back_s, np.inf)
        if len(ids):
            need_progress(float(back_s.min()), t_s, f"device {ids[np.argmin(back_s)]}")
        back_s = np.where(back_s - t_s > self.search_s, np.inf, back_s)
        for pair in zip(back_s[np.isfinite(back_s)].tolist(), ids[np.isfinite(back_s)].tolist(), strict=True):
            heappush(self.away, pair)
        return self.away[0][0] if self.away else math.inf

    def _candidates(self, t_s: float) -> Integers:
        while self.away and self.away[0][0] <= t_s:
            self.looked_at[heappop(self.away)[1]] = True
        return np.flatnonzero(self.looked_at)


def are_there(availability: Availability, batteries: Batteries | None, ids: Integers, t_s: float) -> Booleans:
    """Whether each device is available and charged now, [n]."""
    there = availability.available(ids, t_s)
    return there if batteries is None else there & batteries.ready(ids, t_s)
