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
    _keys: Integers | Floats = field(default_factory=lambda: np.empty(0))
    """Devices and begins of the known chords, as complex numbers, which rise, [m]."""
    _known: Chords = field(default_factory=lambda: Chords(*np.empty((5, 0))))

    def until(self, ids: Integers, t_s: Instants, end_s: Instants) -> Chords:
        """Chords of each device from the one at ``t_s`` to the one just before ``end_s``, as `chords_until`."""
        if self.count > _FEW:
            return chords_until(self.paths, ids, t_s, end_s, self.side_m)
        self._look(float(np.min(t_s)), float(np.max(end_s)))
        first = self._keys.searchsorted(ids + 1j * t_s, "right") - 1
        counts = self._keys.searchsorted(ids + 1j * end_s, "left") - first
        place = np.repeat(np.arange(len(ids)), counts)
        rows, known = first[place] + ranks(counts), self._known
        return Chords(place, known.begin_s[rows], known.end_s[rows], known.x_m[rows], known.y_m[rows])

    def midpoints(self, ids: Integers, t_s: float) -> tuple[Floats, Floats]:
        """Midpoints (x_m, y_m) of the chords on which devices are at an instant, [n] each."""
        if self.count > _FEW:
            return chord_midpoints(self.paths.legs(ids, t_s), t_s, self.side_m)
        self._look(t_s, t_s)
        rows = self._keys.searchsorted(ids + 1j * t_s, "right") - 1
        return self._known.x_m[rows], self._known.y_m[rows]

    def _look(self, first_s: float, last_s: float) -> None:
        """Work out all chords between two instants, and some behind them, unless they are known."""
        if self._since_s <= first_s and last_s < self._until_s:
            return
        everyone = np.arange(self.count)
        # The walk goes on from here, not from the last legs that anybody has asked for.
        self.paths.legs(everyone, first_s)
        length_s = max(last_s - first_s, self._ahead_s)
        self._since_s, self._until_s = first_s, np.nextafter(first_s + length_s, np.inf)
        self._known = chords_until(self.paths, everyone, first_s, self._until_s, self.side_m)
        # NumPy orders complex numbers by their real and then their imaginary parts: by device and then by time.
        self._keys = self._known.place + 1j * self._known.begin_s
        if len(self._keys) < _ENOUGH:
            self._ahead_s = 2.0 * length_s
