"""Paths along recorded positions: straight between a device's rows, at rest before its first and after its last."""

from pathlib import Path

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers, pairs, ranks
from edgesim.base.errors import EdgesimError
from edgesim.mobility.legs import Instants, Legs, joined
from edgesim.mobility.paths import Box, Paths
from edgesim.mobility.position_file import PositionRows


class RecordedPaths(Paths):
    """The `Paths` of a table of positions, whose legs are found by their times.

    The table ends with the last row of any device; from there on it is repeated, its last positions hold for ever, or
    positions are unknown.
    """

    def __init__(self, rows: PositionRows, count: int, wraps: bool, holds: bool, path: Path) -> None:
        """Of the first ``count`` devices of the rows; ``path`` is for messages."""
        self._path = path
        # The table's end is that of all its devices, however few of them a run has.
        self._end_s = float(rows.t_s.max())
        # Without a length to repeat, the only positions hold.
        self._period_s = self._end_s if wraps and self._end_s > 0 else np.inf
        self._known_until_s = np.inf if wraps or holds else self._end_s
        own = slice(0, int(np.searchsorted(rows.device, count)))
        device, t_s, x_m, y_m = rows.device[own], rows.t_s[own], rows.x_m[own], rows.y_m[own]
        self._box = Box(float(x_m.min()), float(x_m.max()), float(y_m.min()), float(y_m.max()))
        leg_device, self._legs = _legs_of(device, t_s, x_m, y_m, self._period_s)
        self._bounds = np.searchsorted(leg_device, np.arange(count + 1))
        """First leg of each device, and the number of legs, [devices + 1]."""
        self._keys = pairs(leg_device, self._legs.t0_s)

    @property
    @override
    def box(self) -> Box:
        return self._box

    @override
    def legs(self, ids: Integers, t_s: Instants) -> Legs:
        return self.ahead(ids, t_s)

    @override
    def positions(self, ids: Integers, t_s: Instants) -> tuple[Floats, Floats]:
        return self.legs(ids, t_s).at(t_s)

    @override
    def ahead(self, ids: Integers, t_s: Instants) -> Legs:
        return self._of_number(ids, self._number_at(ids, t_s))

    @override
    def legs_until(self, ids: Integers, t_s: Instants, end_s: Instants) -> tuple[Integers, Legs]:
        first, last = self._number_at(ids, t_s), self._number_at(ids, end_s)
        # A leg that begins at the end is not asked for.
        last -= (self._of_number(ids, last).t0_s >= end_s) & (last > first)
        counts = last - first + 1
        place = np.repeat(np.arange(len(ids)), counts)
        return place, self._of_number(ids[place], first[place] + ranks(counts))

    @property
    @override
    def known_until_s(self) -> float:
        return self._known_until_s

    @override
    def need_known(self, t_s: float) -> None:
        if t_s > self._known_until_s:
            end, at = f"{self._end_s:.10g} s", f"{t_s:.10g} s"
            needed = "longer" if at == end else f"at {at}"
            raise EdgesimError(
                f"{self._path}: positions are known up to {end}, but needed {needed}; end the run earlier (stop_at_s), "
                'or give a longer table or mobility.after_end = "wrap" or "hold"; if rounds are done already, that '
                "takes another folder",
                "mobility.after_end",
            )

    def _number_at(self, ids: Integers, t_s: Instants) -> Integers:
        """Number of each device's leg at an instant, [n], counted through all repetitions."""
        t_s = np.broadcast_to(t_s, len(ids))
        cycle = np.floor_divide(t_s, self._period_s)
        row = np.searchsorted(self._keys, pairs(ids, t_s - cycle * self._finite_period_s), "right") - 1
        legs = np.diff(self._bounds)[ids]
        return np.asarray(cycle.astype(np.int64) * legs + np.maximum(row - self._bounds[ids], 0))

    def _of_number(self, ids: Integers, number: Integers) -> Legs:
        """Legs of devices by their numbers, [n]."""
        cycle, row = np.divmod(number, np.diff(self._bounds)[ids])
        legs = self._legs.rows(self._bounds[ids] + row)
        begin_s = cycle * self._finite_period_s
        return Legs(legs.t0_s + begin_s, legs.t1_s + begin_s, legs.x0_m, legs.y0_m, legs.vx_mps, legs.vy_mps)

    @property
    def _finite_period_s(self) -> float:
        """Length of a repetition; 0 where nothing is repeated."""
        return self._period_s if self._period_s < np.inf else 0.0


def _legs_of(device: Integers, t_s: Floats, x_m: Floats, y_m: Floats, end_s: float) -> tuple[Integers, Legs]:
    """Device of each leg, and the legs of rows from 0 s to ``end_s``, ordered by device and then time."""
    last, first = np.append(np.diff(device) > 0, True), np.append(True, np.diff(device) > 0)
    until_s = np.where(last, end_s, np.append(t_s[1:], np.inf))
    with np.errstate(invalid="ignore"):
        vx_mps, vy_mps = (np.where(last, 0.0, np.append(np.diff(at_m), 0.0)) / (until_s - t_s) for at_m in (x_m, y_m))
    zero = np.zeros(np.count_nonzero(first))
    legs = joined(
        [
            Legs(zero, t_s[first], x_m[first], y_m[first], zero, zero),
            Legs(t_s, until_s, x_m, y_m, vx_mps, vy_mps),
        ]
    )
    devices = np.append(device[first], device)
    # A device that is there from the start does not wait, and one whose row is the last of all does not rest behind it.
    lasting = np.flatnonzero(legs.t1_s > legs.t0_s)
    order = lasting[np.lexsort((legs.t0_s[lasting], devices[lasting]))]
    return devices[order], legs.rows(order)
