"""Chords of all devices of a run, worked out for some time ahead where the devices are few."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from edgesim.base.arrays import ComplexNumbers, Floats, Integers, pairs
from edgesim.mobility.chords import Chords, chord_midpoints, chords_until
from edgesim.mobility.legs import Instants
from edgesim.mobility.paths import Paths

_FEW = 1 << 9
"""Devices up to which chords are worked out ahead: of a few chords nearly all of the time goes into calls of NumPy."""
_ENOUGH = 1 << 14
"""Chords from which on more at once save no time."""
_MOST = 1 << 18
"""Chords that are worked out at once where many devices are asked for further ahead."""


@dataclass
class ChordsAhead:
    """The chords of a run's devices; those of few devices are known for a while at once."""

    paths: Paths
    side_m: float
    """Side of the squares that cut the paths into chords."""
    count: int
    """Devices of the run."""
    gains: Callable[[Floats, Floats], Floats] | None = None
    """Gains of places (x_m, y_m) to all stations, [M, n], worked out with the chords; None where they depend on more
    than the place."""
    behind_s: float = 0.0
    """Seconds before the present that are asked for, too."""
    _since_s: float = np.inf
    """Instant from which on chords are known."""
    _until_s: float = -np.inf
    """Instant up to which chords are known."""
    _now_s: float = 0.0
    """The present when `present` was last asked."""
    _ahead_s: float = 1.0
    """Seconds in which there are as many chords as are worked out at once."""
    _chords: Chords = field(default_factory=lambda: Chords(np.empty(0, dtype=np.int64), *np.empty((4, 0))))
    """The known chords."""
    _keys: ComplexNumbers = field(default_factory=lambda: np.empty(0, dtype=np.complex128))
    """Device and begin of each as `pairs`, [k]."""
    _gains: Floats | None = None
    """Their gains to all stations, [M, k]."""

    def until(self, ids: Integers, t_s: Instants, end_s: Instants) -> tuple[Chords, Floats | None]:
        """Chords of each device from the one at ``t_s`` to the one just before ``end_s``, as `chords_until`.

        Returns also their gains to all stations, [M, k], where these are known with them.
        """
        if not self._knows(ids, float(np.min(t_s)), float(np.max(end_s))):
            return chords_until(self.paths, ids, t_s, end_s, self.side_m), None
        place, row = self._rows(ids, t_s, end_s)
        known = self._chords
        chords = Chords(place, known.begin_s[row], known.end_s[row], known.x_m[row], known.y_m[row])
        return chords, None if self._gains is None else self._gains.take(row, axis=1)

    def everyone(self, ids: Integers, t_s: float, end_s: float) -> tuple[Chords, Floats | None] | None:
        """Chords of all devices from before ``t_s`` to behind ``end_s``, where those of the devices ``ids`` are known.

        Returns also their gains to all stations, [M, k], where these are known with them. The chords are the same
        object until others are worked out.
        """
        return (self._chords, self._gains) if self._knows(ids, t_s, end_s) else None

    def gains_until(
        self, ids: Integers, station: Integers, t_s: Instants, end_s: Instants
    ) -> tuple[Integers, Floats, Floats, Floats] | None:
        """Places, begins and ends of the chords of `until`, and gains to each device's ``station``, [k] each.

        None where gains are not known with the chords.
        """
        if self.gains is None or not self._knows(ids, float(np.min(t_s)), float(np.max(end_s))):
            return None
        assert self._gains is not None
        place, row = self._rows(ids, t_s, end_s)
        gain = self._gains.ravel().take(row + station[place] * self._gains.shape[1])
        return place, self._chords.begin_s.take(row), self._chords.end_s.take(row), gain

    def present(self, ids: Integers, t_s: float) -> tuple[Floats, Floats, Floats | None]:
        """Midpoints (x_m, y_m) of the chords of devices at the present instant, [n] each.

        Returns also their gains to all stations, [M, n], where these are known with them.
        """
        self._now_s = t_s
        if not self._knows(ids, t_s, t_s):
            return *chord_midpoints(self.paths.legs(ids, t_s), t_s, self.side_m), None
        row = self._keys.searchsorted(pairs(ids, t_s), "right") - 1
        gains = None if self._gains is None else self._gains.take(row, axis=1)
        return self._chords.x_m[row], self._chords.y_m[row], gains

    def _rows(self, ids: Integers, t_s: Instants, end_s: Instants) -> tuple[Integers, Integers]:
        """Positions of chords among the known ones, [k], and of their devices among ``ids``, [k]."""
        first = self._keys.searchsorted(pairs(ids, t_s), "right") - 1
        counts = self._keys.searchsorted(pairs(ids, end_s)) - first
        place = np.arange(len(ids)).repeat(counts)
        return place, np.arange(len(place)) + (first - counts.cumsum() + counts)[place]

    def _knows(self, ids: Integers, first_s: float, last_s: float) -> bool:
        """Whether all chords of devices between two instants are known; those of the near future are worked out for it.

        For most of the devices this looks further ahead, so that of their uploads none has to be looked for alone.
        """
        if self._since_s <= first_s and last_s < self._until_s:
            return True
        is_past, now_s = first_s < self._now_s - self.behind_s, min(first_s, self._now_s)
        if self.count > _FEW or is_past:
            return False
        length_s, far_s = self._ahead_s, 4.0 * (last_s - now_s)
        if far_s > 2.0 * length_s:
            if 2 * len(ids) < self.count or far_s * _ENOUGH > _MOST * length_s:
                return False
            length_s = far_s
        self._look(now_s, length_s)
        return last_s < self._until_s

    def _look(self, now_s: float, length_s: float) -> None:
        """Work out chords of all devices for the present and the near future."""
        self._since_s, self._until_s = max(now_s - self.behind_s, 0.0), now_s + length_s
        everyone = np.arange(self.count)
        # The walk goes on from here, not from the last legs that anybody has asked for.
        self.paths.legs(everyone, self._since_s)
        chords = chords_until(self.paths, everyone, self._since_s, self._until_s, self.side_m)
        self._chords, self._keys = chords, pairs(chords.place, chords.begin_s)
        self._gains = None if self.gains is None else self.gains(chords.x_m, chords.y_m)
        self._ahead_s = length_s * min(_ENOUGH / len(chords.place), 2.0)
