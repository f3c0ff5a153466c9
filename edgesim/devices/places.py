"""Positions of devices, and the stations that serve them, at any instant."""

from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.config import DevicesConfig
from edgesim.streams import Streams


@dataclass(frozen=True)
class FixedPlaces:
    """Places of devices that stand still, [N]: answers are the same at all instants."""

    x_m: Floats
    y_m: Floats
    distance_m: Floats
    """Horizontal distance of each device to its station."""
    station: Integers

    def positions_m(self, ids: Integers, t_s: float) -> tuple[Floats, Floats]:
        """Position of each device at an instant, [n] each."""
        return self.x_m[ids], self.y_m[ids]

    def stations(self, ids: Integers, t_s: float) -> Integers:
        """Station that serves each device at an instant, [n]."""
        return self.station[ids]

    def distances_m(self, ids: Integers, t_s: float) -> Floats:
        """Distance of each device to its station at an instant, [n]."""
        return self.distance_m[ids]

    def since_s(self, t_s: float) -> float:
        """Instant since which all devices have been where they are at ``t_s``, in s."""
        return 0.0


def place_in_disc(ids: Integers, radius_m: float, min_distance_m: float, streams: Streams) -> tuple[Floats, Floats]:
    """Positions (x_m, y_m) uniform over the ring between the two distances from the station at (0, 0).

    ``ids`` are device ids, [n]; each result has one row per device. Draws: stream ``placement``.
    Inverse of the ring's area: d = sqrt(d_min^2 + u (R^2 - d_min^2)), angle uniform.
    """
    draws = streams.uniform("placement", ids, count=2)
    distance_m = np.sqrt(min_distance_m**2 + draws[..., 0] * (radius_m**2 - min_distance_m**2))
    angle = 2.0 * np.pi * draws[..., 1]
    return distance_m * np.cos(angle), distance_m * np.sin(angle)


def places_around_one_station(config: DevicesConfig, streams: Streams) -> FixedPlaces:
    """Places around the station at (0, 0); draws: stream ``placement``."""
    x_m, y_m = place_in_disc(np.arange(config.count), config.radius_m, config.min_distance_m, streams)
    return FixedPlaces(x_m, y_m, np.hypot(x_m, y_m), np.broadcast_to(np.int64(0), config.count))
