"""Instants at which devices leave their work and resume it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.engine.clock import Clock
from edgesim.engine.work import Task
from edgesim.engine.world import World

STAYS_LIMIT = 10_000
"""Stays over which one activity may extend."""


@dataclass(frozen=True)
class Interruptions:
    """Instants at which devices leave their work and return to it, by ``availability.interruption``."""

    clock: Clock
    world: World

    def leaves_s(self, ids: Integers, t_s: float, horizon_s: float) -> Floats:
        """Instant at which each device leaves its work, [n]; inf if not before ``horizon_s`` or leaves are ignored."""
        if self.world.config.availability.interruption == "ignore":
            return np.full(len(ids), np.inf)
        return self.world.availability.available_until(ids, t_s, horizon_s)

    def leaves_stay_s(self, until_s: float) -> float:
        """Instant at which a device whose stay ends at ``until_s`` leaves its work; inf if leaves are ignored."""
        return math.inf if self.world.config.availability.interruption == "ignore" else until_s

    def away_s(self, ids: Integers, t_start_s: Floats, t_end_s: Floats) -> Floats:
        """Seconds of each stretch of work in which its device was away, [n]; 0 unless interruptions are ignored."""
        away_s = np.zeros(len(ids))
        if self.world.config.availability.interruption != "ignore" or not len(ids):
            return away_s
        until_s = self.world.availability.available_until(ids, t_start_s, float(t_end_s.max()))
        for row in np.flatnonzero(until_s < t_end_s).tolist():
            away_s[row] = self._away_s(ids[row : row + 1], float(until_s[row]), float(t_end_s[row]))
        return away_s

    def _away_s(self, device: Integers, t_s: float, end_s: float) -> float:
        """Seconds from ``t_s``, when the device [1] leaves or is away, to ``end_s`` in which it is away."""
        away_s, stays = 0.0, 0
        while t_s < end_s:
            stays = self._counted(stays, int(device[0]))
            try:
                back_s = min(end_s, float(self.world.availability.next_available(device, t_s)[0]))
            except EdgesimError:
                # The model looked ahead as far as it can and found no return: any is long after this work.
                back_s = end_s
            away_s += back_s - t_s
            t_s = end_s if back_s >= end_s else float(self.world.availability.available_until(device, back_s, end_s)[0])
        return away_s

    def _counted(self, stays: int, device: int) -> int:
        """Add one to the stays of a task; raises `EdgesimError` if these are too many."""
        if stays >= STAYS_LIMIT:
            raise EdgesimError(
                f"availability: device {device} came and went more than {STAYS_LIMIT} times in one task, up to "
                f"{self.clock.now:g} s; let it stay longer (slot_s, period_s) or set interruption = 'abort'",
                "availability.interruption",
            )
        return stays + 1

    @property
    def back_s(self) -> Callable[[Task], float | None] | None:
        """Function of `RoundSignals.back_s`; None where the work of a device that leaves is lost."""
        return self._back_s if self.world.config.availability.interruption == "pause" else None

    def _back_s(self, task: Task) -> float | None:
        if self.world.availability.by_rounds:
            return math.inf
        self._counted(len(task.spans), task.device)
        ids = np.array([task.device])
        back_s = float(self.world.availability.next_available(ids, self.clock.now)[0])
        if math.isinf(back_s):
            return None
        task.leaves_s = float(self.leaves_s(ids, back_s, math.inf)[0])
        return back_s


def need_progress(when_s: float, now_s: float, what: str) -> None:
    """Raise `EdgesimError` if availability contradicts itself: what does not hold at ``now_s`` is to hold by then.

    A process that slept until then would ask again at the same instant, for ever.
    """
    if when_s <= now_s:
        raise EdgesimError(
            f"availability: asked at {now_s!r} s for the next time with {what}, which is not now, the "
            f"availability model answers {when_s!r} s; its answers contradict each other"
        )
