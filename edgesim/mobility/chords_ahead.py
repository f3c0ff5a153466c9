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
_ENOUGH = 1 << 13
"""Chords from which on more at once save no time."""


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
    _known: Floats = field(default_factory=lambda: np.empty((4, 0)))
    """Begin, end, midpoint (x, y) and gains of each device's known chords, then inf, [4 or 4 + M, devices * m]."""
    _begins_s: Floats = field(default_factory=lambda: np.empty((0, 0)))
    """The begins among them, [devices, m]."""

    def until(self, ids: Integers, t_s: Instants, end_s: Instants) -> tuple[Chords, Floats | None]:
        """Chords of each device from the one at ``t_s`` to the one just before ``end_s``, as `chords_until`.

        Returns also their gains to all stations, [M, k], where these are known with them.
        """
        if not self._knows(float(np.min(t_s)), float(np.max(end_s))):
            return chords_until(self.paths, ids, t_s, end_s, self.side_m), None
        begins_s = self._begins_s[ids]
        first = _count(begins_s <= np.reshape(t_s, (-1, 1))) - 1
        counts = _count(begins_s < np.reshape(end_s, (-1, 1))) - first
        place = np.repeat(np.arange(len(ids)), counts)
        known = self._known.take((ids * begins_s.shape[1] + first)[place] + ranks(counts), axis=1)
        return Chords(place, *known[:4]), None if self.gains is None else known[4:]

    def present(self, ids: Integers, t_s: float) -> tuple[Floats, Floats, Floats | None]:
        """Midpoints (x_m, y_m) of the chords of devices at the present instant, [n] each.

        Returns also their gains to all stations, [M, n], where these are known with them.
        """
        self._now_s = t_s
        if not self._knows(t_s, t_s):
            return *chord_midpoints(self.paths.legs(ids, t_s), t_s, self.side_m), None
        begins_s = self._begins_s[ids]
        known = self._known.take(ids * begins_s.shape[1] + _count(begins_s <= t_s) - 1, axis=1)
        return known[2], known[3], None if self.gains is None else known[4:]

    def _knows(self, first_s: float, last_s: float) -> bool:
        """Whether all chords between two instants are known; those of the near future are worked out for it."""
        if self._since_s <= first_s and last_s < self._until_s:
            return True
        is_past, now_s = first_s < self._now_s - self.behind_s, min(first_s, self._now_s)
        if self.count > _FEW or is_past or last_s - now_s > 0.5 * self._ahead_s:
            return False
        self._look(now_s)
        return last_s < self._until_s

    def _look(self, now_s: float) -> None:
        """Work out chords of all devices for the present and the near future."""
        self._since_s, self._until_s = max(now_s - self.behind_s, 0.0), now_s + self._ahead_s
        everyone = np.arange(self.count)
        # The walk goes on from here, not from the last legs that anybody has asked for.
        self.paths.legs(everyone, self._since_s)
        chords = chords_until(self.paths, everyone, self._since_s, self._until_s, self.side_m)
        counts = np.bincount(chords.place)
        columns = np.array([chords.begin_s, chords.end_s, chords.x_m, chords.y_m])
        if self.gains is not None:
            columns = np.concatenate([columns, self.gains(chords.x_m, chords.y_m)])
        known = np.full((len(columns), self.count, counts.max()), np.inf)
        known[:, chords.place, ranks(counts)] = columns
        self._known, self._begins_s = known.reshape(len(columns), -1), known[0]
        self._ahead_s *= min(_ENOUGH / len(chords.place), 2.0)


def _count(whether: Booleans) -> Integers:
    """Number of those that are true in each row, [n]."""
    # Not by `count_nonzero`, which takes longer to find out that it is to add up.
    return np.asarray(np.add.reduce(whether, axis=1, dtype=np.int64))
