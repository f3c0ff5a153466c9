"""Chords: the parts of legs inside one square of a grid, with lines at the multiples of the squares' side.

The gain of a device is constant on a chord, and that of the chord's midpoint. Chords depend on the leg alone, not on
the instants that are asked for.
"""

from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Floats, Integers, ranks
from edgesim.mobility.legs import Instants, Legs
from edgesim.mobility.paths import Paths

_TICK_S = 2.0**-34
"""Instants of a leg are rounded to this, so that two lines that are crossed at a corner are crossed at one instant."""
_AT_ONCE = 1 << 13


@dataclass(frozen=True, eq=False)
class Chords:
    """Some chords, one row each, [k], ordered by device and then time."""

    place: Integers
    """Position of the chord's device among those asked for, rising."""
    begin_s: Floats
    end_s: Floats
    """End; inf for a device that rests for ever."""
    x_m: Floats
    """The midpoint; of a device at rest its exact place."""
    y_m: Floats


def chords_until(paths: Paths, ids: Integers, t_s: Instants, end_s: Instants, side_m: float) -> Chords:
    """The chords of each device from the one at ``t_s`` to the one just before ``end_s``, in squares of a side."""
    place, legs = paths.legs_until(ids, t_s, end_s)
    return chords_of(legs, place, np.broadcast_to(t_s, len(ids)), np.broadcast_to(end_s, len(ids)), side_m)


def chords_of(legs: Legs, place: Integers, t_s: Floats, end_s: Floats, side_m: float) -> Chords:
    """The chords of ``legs`` [l], one device after another, from the one at ``t_s`` to the one just before ``end_s``.

    ``place`` [l] is the position of each leg's device in ``t_s`` and ``end_s``, [n].
    """
    count, last_s, begins_s, ends_s = len(legs), _rounded_s(legs.t1_s - legs.t0_s), t_s[place], end_s[place]
    start_m, speed_mps = _axes(legs)
    moves = speed_mps > 0
    from_m, to_m = (
        start_m + speed_mps * np.where(moves, np.minimum(np.maximum(at_s, legs.t0_s), legs.t1_s) - legs.t0_s, 0.0)
        for at_s in (begins_s, ends_s)
    )
    # A line more on each side, for what is rounded and for the begin of the first chord.
    first = np.floor(from_m / side_m).astype(np.int64) - 1
    counts = np.where(moves, np.floor(to_m / side_m).astype(np.int64) + 3 - first, 0).ravel()
    way, rank = np.repeat(np.arange(2 * count), counts), ranks(counts)
    line = first.ravel()[way] + rank
    crossed_s = _crossed_s(line, start_m.ravel()[way], speed_mps.ravel()[way], side_m)
    leg = np.repeat(np.tile(np.arange(count), 2), counts)
    inside = np.flatnonzero((crossed_s > 0) & (crossed_s < last_s[leg]))
    # Lines of both axes are crossed in any order; each leg's own are sorted together with its begin and its end, in a
    # row of a matrix, which takes a tenth of the time of sorting all at once by leg and instant.
    most = counts.max(initial=0)
    by_leg_s = np.full((count, 2 + 2 * most), np.inf)
    by_leg_s[:, 0], by_leg_s[:, 1] = 0.0, last_s
    by_leg_s[leg[inside], 2 + rank[inside] + most * (way[inside] >= count)] = crossed_s[inside]
    by_leg_s.sort(axis=1)
    edges = 2 + np.bincount(leg[inside], minlength=count)
    every_leg, every_s = np.repeat(np.arange(count), edges), by_leg_s[np.arange(2 + 2 * most) < edges[:, None]]
    row, enter_s, leave_s = every_leg[:-1], every_s[:-1], every_s[1:]
    begin_s = legs.t0_s[row] + enter_s
    over_s = np.where(leave_s == last_s[row], legs.t1_s[row], legs.t0_s[row] + leave_s)
    asked = (over_s > begins_s[row]) & (begin_s < ends_s[row])
    keep = np.flatnonzero((every_leg[1:] == row) & (leave_s > enter_s) & asked)
    row = row[keep]
    x_m, y_m = _midpoints(legs.rows(row), enter_s[keep], leave_s[keep])
    return Chords(place[row], begin_s[keep], over_s[keep], x_m, y_m)


def chord_midpoints(legs: Legs, t_s: Instants, side_m: float) -> tuple[Floats, Floats]:
    """Midpoints (x_m, y_m) of the chords on which devices are at an instant within their ``legs``, [n] each."""
    x_m, y_m = np.empty(len(legs)), np.empty(len(legs))
    t_s = np.broadcast_to(t_s, len(legs))
    # In parts whose arrays fit into the processor's cache.
    for begin in range(0, len(legs), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        x_m[part], y_m[part] = _midpoints_at(Legs(*(column[part] for column in legs.columns)), t_s[part], side_m)
    return x_m, y_m


def _midpoints_at(legs: Legs, t_s: Floats, side_m: float) -> tuple[Floats, Floats]:
    since_s = t_s - legs.t0_s
    start_m, speed_mps = _axes(legs)
    moves = speed_mps > 0
    line = np.floor((start_m + speed_mps * since_s) / side_m)
    entered_s, left_s = (_crossed_s(line + step, start_m, speed_mps, side_m) for step in (0.0, 1.0))
    # Rounded, an instant may lie in the square before or behind that of its position.
    for wrong, step in ((entered_s > since_s, -1.0), (left_s <= since_s, 1.0)):
        rows = (wrong & moves).nonzero()
        if len(rows[0]):
            for crossed_s, offset in ((entered_s, step), (left_s, step + 1.0)):
                crossed_s[rows] = _crossed_s(line[rows] + offset, start_m[rows], speed_mps[rows], side_m)
    rests = ~moves
    entered_s[rests], left_s[rests] = 0.0, np.inf
    enter_s = np.maximum(np.maximum(entered_s[0], entered_s[1]), 0.0)
    leave_s = np.minimum(np.minimum(left_s[0], left_s[1]), _rounded_s(legs.t1_s - legs.t0_s))
    return _midpoints(legs, enter_s, leave_s)


def _axes(legs: Legs) -> tuple[Floats, Floats]:
    """Starts and speeds along the axes, [2, n] each; axes that are walked backwards are turned around."""
    velocity_mps = np.stack((legs.vx_mps, legs.vy_mps))
    return np.copysign(1.0, velocity_mps) * np.stack((legs.x0_m, legs.y0_m)), np.abs(velocity_mps)


def _crossed_s(line: Floats | Integers, start_m: Floats, speed_mps: Floats, side_m: float) -> Floats:
    """Seconds since the begin of each leg at which it crosses a line, [n]; of no meaning at speed 0."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return _rounded_s((line * side_m - start_m) / speed_mps)


def _rounded_s(since_s: Floats) -> Floats:
    return np.asarray(np.rint(since_s * (1.0 / _TICK_S)) * _TICK_S)


def _midpoints(legs: Legs, enter_s: Floats, leave_s: Floats) -> tuple[Floats, Floats]:
    middle_s = np.where(legs.rests, 0.0, 0.5 * (enter_s + leave_s))
    return legs.x0_m + legs.vx_mps * middle_s, legs.y0_m + legs.vy_mps * middle_s
