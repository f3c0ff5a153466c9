"""Chords of all devices of a run, worked out for some time ahead where the devices are few."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers, ranks
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
    gain: Callable[[Floats, Floats], Floats] | None = None
    """Gains of places (x_m, y_m), worked out with the chords; None where they depend on more than the place."""
    _since_s: float = np.inf
    """Instant from which on chords are known."""
    _until_s: float = -np.inf
    """Instant up to which chords are known."""
    _ahead_s: float = 1.0
    """Seconds that chords are looked at ahead next, or as many more as are asked for."""
    _known: Floats = field(default_factory=lambda: np.empty((4, 0)))
    """Begin, end, midpoint (x, y) and gain of each device's known chords, then inf, [4 or 5, devices * m]."""
    _begins_s: Floats = field(default_factory=lambda: np.empty((0, 0)))
    """The begins among them, [devices, m]."""

    def until(self, ids: Integers, t_s: Instants, end_s: Instants) -> Chords:
        """Chords of each device from the one at ``t_s`` to the one just before ``end_s``, as `chords_until`."""
        if self.count > _FEW:
            return chords_until(self.paths, ids, t_s, end_s, self.side_m)
        self._look(float(np.min(t_s)), float(np.max(end_s)))
        begins_s = self._begins_s[ids]
        first = _count(begins_s <= np.reshape(t_s, (-1, 1))) - 1
        counts = _count(begins_s < np.reshape(end_s, (-1, 1))) - first
        place = np.repeat(np.arange(len(ids)), counts)
        known = (ids * begins_s.shape[1] + first)[place] + ranks(counts)
        return Chords(place, *self._known.take(known, axis=1))

    def present(self, ids: Integers, t_s: float) -> tuple[Floats, Floats, Floats | None]:
        """Midpoints (x_m, y_m) of the chords of devices at an instant, [n] each, and their gains or None."""
        if self.count > _FEW:
            return *chord_midpoints(self.paths.legs(ids, t_s), t_s, self.side_m), None
        self._look(t_s, t_s)
        begins_s = self._begins_s[ids]
        x_m, y_m, *gain = self._known[2:].take(ids * begins_s.shape[1] + _count(begins_s <= t_s) - 1, axis=1)
        return x_m, y_m, *(gain or [None])

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
        columns = [chords.begin_s, chords.end_s, chords.x_m, chords.y_m]
        if self.gain is not None:
            columns.append(self.gain(chords.x_m, chords.y_m))
        known = np.full((len(columns), self.count, counts.max()), np.inf)
        known[:, chords.place, ranks(counts)] = columns
        self._known, self._begins_s = known.reshape(len(columns), -1), known[0]
        if len(chords.place) < _ENOUGH:
            self._ahead_s = 2.0 * length_s


def _count(whether: Booleans) -> Integers:
    """Number of those that are true in each row, [n]."""
    # Not by `count_nonzero`, which takes longer to find out that it is to add up.
    return np.asarray(np.add.reduce(whether, axis=1, dtype=np.int64))
