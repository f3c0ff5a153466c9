"""Positions of devices, and the stations that serve them, at any instant."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.config import DevicesConfig
from edgesim.streams import Streams


class Places(Protocol):
    """Where devices are, and which stations serve those that begin to work, at any instant."""

    def positions_m(self, ids: Integers, t_s: float) -> tuple[Floats, Floats]:
        """Position of each device at an instant, [n] each."""

    def stations(self, ids: Integers, t_s: float) -> Integers:
        """Station that serves each device which begins to work at an instant, [n]."""

    def distances_m(self, ids: Integers, t_s: float) -> Floats:
        """Distance of each device to that station at an instant, [n]."""


@dataclass(frozen=True)
class FixedPlaces(Places):
    """Places of devices that stand still, [N]: answers are the same at all instants."""

    x_m: Floats
    y_m: Floats
    distance_m: Floats
    """Horizontal distance of each device to its station."""
    station: Integers

    @override
    def positions_m(self, ids: Integers, t_s: float) -> tuple[Floats, Floats]:
        return self.x_m[ids], self.y_m[ids]

    @override
    def stations(self, ids: Integers, t_s: float) -> Integers:
        return self.station[ids]

    @override
    def distances_m(self, ids: Integers, t_s: float) -> Floats:
        return self.distance_m[ids]


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
