"""Chords of all devices of a run, worked out for some time ahead where the devices are few."""

from dataclasses import dataclass, field

import numpy as np

from edgesim.base.arrays import Floats, Integers, ranks
from edgesim.mobility.chords import Chords, chord_midpoints, chords_until
from edgesim.mobility.legs import Instants
from edgesim.mobility.paths import Paths

_FEW = 1 << 9
"""Devices up to which chords are worked out ahead: of a few chords nearly all of the time goes into calls of NumPy."""
_ENOUGH = 1 << 12
"""Chords from which on more at once save no time."""


@dataclass
class ChordsAhead:
    """The chords of a run's devices; those of few devices are kept until all are over."""

    paths: Paths
    side_m: float
    """Side of the squares that cut the paths into chords."""
    count: int
    """Devices of the run."""
    _since_s: float = np.inf
    """Instant from which on chords are known."""
    _until_s: float = -np.inf
    """Instant up to which chords are known."""
    _ahead_s: float = 1.0
    """Seconds that chords are looked at ahead next, or as many more as are asked for."""
    _known: Floats = field(default_factory=lambda: np.empty((4, 0, 0)))
    """Begin, end and midpoint (x, y) of each device's known chords, then inf, [4, devices, m]."""

    def until(self, ids: Integers, t_s: Instants, end_s: Instants) -> Chords:
        """Chords of each device from the one at ``t_s`` to the one just before ``end_s``, as `chords_until`."""
        if self.count > _FEW:
            return chords_until(self.paths, ids, t_s, end_s, self.side_m)
        self._look(float(np.min(t_s)), float(np.max(end_s)))
        first, last = self._columns(ids, t_s), self._columns(ids, np.nextafter(end_s, -np.inf))
        counts = last - first + 1
        place = np.repeat(np.arange(len(ids)), counts)
        return Chords(place, *self._known[:, ids[place], first[place] + ranks(counts)])

    def midpoints(self, ids: Integers, t_s: float) -> tuple[Floats, Floats]:
        """Midpoints (x_m, y_m) of the chords on which devices are at an instant, [n] each."""
        if self.count > _FEW:
            return chord_midpoints(self.paths.legs(ids, t_s), t_s, self.side_m)
        self._look(t_s, t_s)
        x_m, y_m = self._known[2:, ids, self._columns(ids, t_s)]
        return x_m, y_m

    def _columns(self, ids: Integers, t_s: Instants) -> Integers:
        """Columns of the known chords on which devices are at instants, [n]."""
        begun = self._known[0, ids] <= np.reshape(t_s, (-1, 1))
        return np.asarray(np.count_nonzero(begun, axis=1) - 1)

    def _look(self, first_s: float, last_s: float) -> None:
        """Work out all chords between two instants, and some behind them, unless they are known."""
        if self._since_s <= first_s and last_s < self._until_s:
            return
        everyone = np.arange(self.count)
        # The walk goes on from here, not from the last legs that anybody has asked for.
        self.paths.legs(everyone, first_s)
        length_s = max(last_s - first_s, self._ahead_s)
        self._since_s, self._until_s = first_s, np.nextafter(first_s + length_s, np.inf)
        chords = chords_until(self.paths, everyone, first_s, self._until_s, self.side_m)
        counts = np.bincount(chords.place)
        self._known = np.full((4, self.count, counts.max()), np.inf)
        self._known[:, chords.place, ranks(counts)] = chords.begin_s, chords.end_s, chords.x_m, chords.y_m
        if len(chords.place) < _ENOUGH:
            self._ahead_s = 2.0 * length_s
