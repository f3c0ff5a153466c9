"""Positions of devices around their station."""

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Floats
from edgesim.streams import Streams


def place_in_disc(ids: ArrayLike, radius_m: float, min_distance_m: float, streams: Streams) -> tuple[Floats, Floats]:
    """Positions (x_m, y_m) uniform over the ring between the two distances from the station at (0, 0).

    ``ids`` are device ids, [n]; each result has one row per device. Draws: stream ``placement``.
    Inverse of the ring's area: d = sqrt(d_min^2 + u (R^2 - d_min^2)), angle uniform.
    """
    draws = streams.uniform("placement", ids, count=2)
    distance_m = np.sqrt(min_distance_m**2 + draws[..., 0] * (radius_m**2 - min_distance_m**2))
    angle = 2.0 * np.pi * draws[..., 1]
    return distance_m * np.cos(angle), distance_m * np.sin(angle)
