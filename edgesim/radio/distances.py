"""Distances between places and stations."""

import numpy as np

from edgesim.base.arrays import Floats, Integers


def distances_m(stations_m: Floats, station: Integers | int, x_m: Floats, y_m: Floats, least_m: float) -> Floats:
    """Horizontal distance of each place to a station of ``stations_m`` [M, 2], at least ``least_m``, [n].

    No path-loss law is meant for the foot of the mast.
    """
    away_m = np.hypot(x_m - stations_m[station, 0], y_m - stations_m[station, 1])
    return np.asarray(np.maximum(away_m, least_m))
