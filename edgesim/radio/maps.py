"""Maps of shadowing and line of sight: whoever passes a place sees the same there."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.radio.correlated_field import correlated_field, field_deviations, torus_size
from edgesim.radio.decibels import ratio_from_db
from edgesim.radio.distances import distances_m
from edgesim.radio.environment import Environment, of_station
from edgesim.radio.laws.law import Law
from edgesim.radio.squares import Squares
from edgesim.streams import Streams

MOST_SQUARES = 2**24
"""Squares of all maps, and of the torus on which one is drawn: 128 MiB of numbers."""
_WIDEST_GRID_M = 1000.0


@dataclass(frozen=True, eq=False)
class RadioMaps:
    """Shadowing and line of sight between each station and each square, drawn or recorded, and the law between."""

    squares: Squares
    shadowing_db: Floats
    """Shadowing by station, [stations, rows, columns]."""
    sees: Booleans
    """Whether a device in the square sees the station, [stations, rows, columns]."""
    law: Law
    stations_m: Floats
    """Positions of the stations, [stations, 2]."""
    min_distance_m: float

    @property
    def nbytes(self) -> int:
        """Memory of the maps, in bytes."""
        return self.shadowing_db.nbytes + self.sees.nbytes

    def mean_power_gain(self, station: Integers, x_m: Floats, y_m: Floats) -> Floats:
        """Average power gain of places to a station each, linear, [n]: path loss and shadowing, no fading.

        Path loss is that of the place itself, as if it were at least ``min_distance_m`` away; places lie in the maps.
        """
        row, column = self.squares.row_and_column(x_m, y_m)
        away_m = distances_m(self.stations_m, station, x_m, y_m, self.min_distance_m)
        sees, shadow_db = self.sees[station, row, column], self.shadowing_db[station, row, column]
        return ratio_from_db(-(self.law.loss_db(away_m, sees) + shadow_db))

    def gains_to_all(self, x_m: Floats, y_m: Floats) -> Floats:
        """Average power gains of places to every station, as `mean_power_gain`, [stations, n]."""
        return np.array([self.mean_power_gain(np.array([at]), x_m, y_m) for at in range(len(self.stations_m))])


def draw_maps(
    environment: Environment,
    squares: Squares,
    stations_m: Floats,
    min_distance_m: float,
    streams: Streams,
    between_stations: float = 0.0,
) -> RadioMaps:
    """Draw the maps of an environment for stations at ``stations_m``, [stations, 2].

    Shadowing: for each branch a `correlated_field` times the branch's deviation, in dB, sqrt(c) times one of all
    stations plus sqrt(1 - c) times the station's own, c = ``between_stations``. Line of sight: Phi(a field of its own)
    below the law's probability at the square's middle. Draws: streams ``shadowing-map`` (``-nlos`` out of sight) and
    ``los-map``, of each station. Raises `EdgesimError` for an environment without correlation distances, and for too
    many squares.
    """
    law, count = environment.path_loss, len(stations_m)
    branches = _decorrelation_m(environment, True), _decorrelation_m(environment, False)
    _refuse_too_many(squares, count, max(*branches, law.sight_decorrelation_m))
    x_m, y_m = squares.middles_m()
    shape = (count, squares.rows, squares.columns)
    sees, shadowing_db = np.ones(shape, dtype=bool), np.zeros(shape)
    chance = [law.los_probability(np.hypot(x_m - at[0], y_m - at[1])) for at in stations_m]
    if any((one < 1.0).any() for one in chance):
        deviations = field_deviations(squares, law.sight_decorrelation_m)
        for station in range(count):
            field = correlated_field(of_station("los-map", station), streams, squares, deviations)
            sees[station] = ndtr(field) < chance[station]
    for los, suffix, decorrelation_m in ((True, "", branches[0]), (False, "-nlos", branches[1])):
        std_db = law.shadowing_std_db(los)
        std = float(environment.shadowing_std_db or 0.0) if std_db is None else float(std_db)
        if std == 0.0 or not (sees == los).any():
            continue
        deviations = field_deviations(squares, decorrelation_m)
        name = f"shadowing-map{suffix}"
        common = correlated_field(f"{name}-common", streams, squares, deviations) if between_stations > 0 else 0.0
        for station in range(count):
            own = correlated_field(of_station(name, station), streams, squares, deviations)
            field = math.sqrt(between_stations) * common + math.sqrt(1.0 - between_stations) * own
            np.copyto(shadowing_db[station], std * field, where=sees[station] == los)
    return RadioMaps(squares, shadowing_db, sees, law, stations_m, min_distance_m)


def _decorrelation_m(environment: Environment, los: bool) -> float:
    """Correlation distance of a branch; raises `EdgesimError` if neither the law nor the environment states one."""
    own_m = environment.path_loss.decorrelation_m(los)
    if own_m is not None:
        return float(own_m)
    if environment.shadowing_std_db == 0.0:
        # Without shadowing there is nothing whose correlation could fall.
        return 0.0
    if environment.decorrelation_m is None:
        raise EdgesimError(
            f"radio.shadowing = 'map' needs decorrelation_m in the environment {environment.name!r}: the distance over "
            "which the correlation of shadowing falls to 1/e",
            "radio.shadowing",
        )
    return environment.decorrelation_m


def _refuse_too_many(squares: Squares, stations: int, decorrelation_m: float) -> None:
    """Raise `EdgesimError` for maps of too many squares, with the side of squares that are few enough."""
    count = _squares(squares, stations, decorrelation_m)
    if count <= MOST_SQUARES:
        return
    sides_m = [step * 10.0**power for power in range(-1, 4) for step in (1.0, 2.0, 5.0)]
    wider_m = (side_m for side_m in sides_m if squares.side_m < side_m <= _WIDEST_GRID_M)
    fits = (
        side_m for side_m in wider_m if _squares(squares.of_side(side_m), stations, decorrelation_m) <= MOST_SQUARES
    )
    side_m = next(fits, None)
    if side_m is None:
        remedy = "no grid is wide enough: make the area smaller, or set radio.shadowing = 'per_run'"
    else:
        remedy = f"radio.grid_m = {side_m:g} fits"
    raise EdgesimError(
        f"radio.grid_m ({squares.side_m:g}) makes maps of {count:,} squares, more than {MOST_SQUARES:,}; {remedy}",
        "radio.grid_m",
    )


def _squares(squares: Squares, stations: int, decorrelation_m: float) -> int:
    """Squares of all maps, or of the torus on which each is drawn if that has more."""
    return max(stations * len(squares), torus_size(squares, decorrelation_m) ** 2)
