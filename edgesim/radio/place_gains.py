"""Average gains of devices at any place to any station: of maps, or of draws of each device."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.radio.decibels import ratio_from_db
from edgesim.radio.distances import distances_m
from edgesim.radio.environment import Environment
from edgesim.radio.maps import RadioMaps
from edgesim.streams import Streams


class PlaceGains(Protocol):
    """Average power gains, path loss and shadowing without fading, of devices at places that they may leave."""

    def mean_power_gain(
        self, ids: Integers, draws: int | Integers, station: Integers, x_m: Floats, y_m: Floats
    ) -> Floats:
        """Gain of each device at a place to a station each, linear, [n]; ``draws`` number the draws, if any."""

    def lasting_power_gain(self, ids: Integers, station: Integers, x_m: Floats, y_m: Floats) -> Floats:
        """The part of `mean_power_gain` that no draws change, [n], by which devices join a station."""

    def law_power_gain(self, station: Integers, x_m: Floats, y_m: Floats) -> Floats:
        """Gain of places to a station each by the law in line of sight alone, linear, [n]; it falls with distance."""


@dataclass(frozen=True, eq=False)
class MapGains(PlaceGains):
    """Shadowing and line of sight are functions of the place."""

    maps: RadioMaps

    @override
    def mean_power_gain(
        self, ids: Integers, draws: int | Integers, station: Integers, x_m: Floats, y_m: Floats
    ) -> Floats:
        return self.maps.mean_power_gain(station, x_m, y_m)

    @override
    def lasting_power_gain(self, ids: Integers, station: Integers, x_m: Floats, y_m: Floats) -> Floats:
        return self.maps.mean_power_gain(station, x_m, y_m)

    @override
    def law_power_gain(self, station: Integers, x_m: Floats, y_m: Floats) -> Floats:
        away_m = distances_m(self.maps.stations_m, station, x_m, y_m, self.maps.min_distance_m)
        return ratio_from_db(-self.maps.law.loss_db(away_m))


@dataclass(frozen=True, eq=False)
class DrawnGains(PlaceGains):
    """Shadowing of a device is drawn once per run or per round, wherever it goes.

    Whether it sees a station depends on one number for each device and station and on the present distance.
    """

    environment: Environment
    stations_m: Floats
    """Positions of the stations, [stations, 2]."""
    min_distance_m: float
    streams: Streams

    @override
    def mean_power_gain(
        self, ids: Integers, draws: int | Integers, station: Integers, x_m: Floats, y_m: Floats
    ) -> Floats:
        gain, away_m = np.empty(len(ids)), distances_m(self.stations_m, station, x_m, y_m, self.min_distance_m)
        for number in np.unique(station).tolist():
            rows = np.flatnonzero(station == number)
            drawn_in = draws if isinstance(draws, int) else draws[rows]
            gain[rows] = self.environment.mean_power_gain(away_m[rows], self.streams, ids[rows], drawn_in, number)
        return gain

    @override
    def lasting_power_gain(self, ids: Integers, station: Integers, x_m: Floats, y_m: Floats) -> Floats:
        gain, away_m = np.empty(len(ids)), distances_m(self.stations_m, station, x_m, y_m, self.min_distance_m)
        for number in np.unique(station).tolist():
            rows = np.flatnonzero(station == number)
            gain[rows] = self.environment.constant_power_gain(away_m[rows], self.streams, ids[rows], number)
        return gain

    @override
    def law_power_gain(self, station: Integers, x_m: Floats, y_m: Floats) -> Floats:
        away_m = distances_m(self.stations_m, station, x_m, y_m, self.min_distance_m)
        return ratio_from_db(-self.environment.path_loss.loss_db(away_m))
