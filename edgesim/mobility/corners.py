"""The corners of paths: instants and places between which devices go straight."""

from typing import NamedTuple

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.mobility.legs import Legs, joined
from edgesim.mobility.paths import Paths

_FIRST_S, _JUMP_M = 60.0, 1e-6


class Corners(NamedTuple):
    """Positions by device and then time, as recordings have them, [k]; a device is straight on its way between them."""

    device: Integers
    t_s: Floats
    x_m: Floats
    y_m: Floats


def corners(paths: Paths, count: int, end_s: float, most: int) -> Corners | None:
    """Corners of the paths of ``count`` devices from 0 s to an instant; None where these are more than ``most``."""
    ids = np.arange(count)
    places, parts, t_s, length_s = list[Integers](), list[Legs](), 0.0, _FIRST_S
    while t_s < end_s:
        # In growing parts, since nobody knows how many legs there are.
        until_s = min(t_s + length_s, end_s)
        place, legs = paths.legs_until(ids, t_s, until_s)
        # Of a leg that lies in several parts only the first is kept.
        new = (legs.t0_s >= t_s) | (t_s == 0.0)
        places.append(place[new])
        parts.append(legs.rows(np.flatnonzero(new)))
        if sum(map(len, parts)) > most:
            return None
        t_s, length_s = until_s, 2.0 * length_s
    if not parts:
        parts, places = [paths.ahead(ids, 0.0)], [ids]
    device, legs = np.concatenate(places), joined(parts)
    order = np.lexsort((legs.t0_s, device))
    return _of_legs(device[order], legs.rows(order), end_s)


def _of_legs(device: Integers, legs: Legs, end_s: float) -> Corners:
    """Begins of legs, and their ends where a device's next leg begins elsewhere, as repeated recordings do, or none."""
    last = np.append(device[1:] != device[:-1], True)
    until_s = np.minimum(legs.t1_s, end_s)
    x_m, y_m = legs.at(until_s)
    away_m = np.hypot(np.append(legs.x0_m[1:], 0.0) - x_m, np.append(legs.y0_m[1:], 0.0) - y_m)
    ends = np.flatnonzero((last & (until_s > legs.t0_s)) | (~last & (away_m > _JUMP_M)))
    before_s = np.where(last[ends], until_s[ends], np.nextafter(until_s[ends], -np.inf))
    whole = Corners(
        np.concatenate([device, device[ends]]),
        np.concatenate([legs.t0_s, before_s]),
        np.concatenate([legs.x0_m, x_m[ends]]),
        np.concatenate([legs.y0_m, y_m[ends]]),
    )
    order = np.lexsort((whole.t_s, whole.device))
    return Corners(whole.device[order], whole.t_s[order], whole.x_m[order], whole.y_m[order])
