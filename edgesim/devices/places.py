"""Positions of devices, and the stations that serve them, at any instant."""

from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.config import DevicesConfig
from edgesim.devices.placement import place_in_disc
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


def places_around_one_station(config: DevicesConfig, streams: Streams) -> FixedPlaces:
    """Places around the station at (0, 0); draws: stream ``placement``."""
    x_m, y_m = place_in_disc(np.arange(config.count), config.radius_m, config.min_distance_m, streams)
    return FixedPlaces(x_m, y_m, np.hypot(x_m, y_m), np.broadcast_to(np.int64(0), config.count))
