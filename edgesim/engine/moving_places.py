"""Places of devices that move: their stations and gains at any instant, and the gains along their ways."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.devices.attachment import Attach
from edgesim.devices.event_a3 import EventA3, Handovers, Ways, next_handovers, stretches
from edgesim.devices.places import Places
from edgesim.mobility.chords import Chords, chords_of, chords_until
from edgesim.mobility.chords_ahead import ChordsAhead
from edgesim.mobility.legs import Instants, Legs
from edgesim.mobility.paths import Paths
from edgesim.radio.decibels import db_from_ratio
from edgesim.radio.distances import distances_m
from edgesim.radio.link import ShannonLink
from edgesim.radio.maps import RadioMaps
from edgesim.radio.place_gains import PlaceGains

FEW_STATIONS = 8
"""Stations up to which what chords known ahead have to do with all of them is worked out with the chords."""
_BEYOND = 4.0
"""Sides of squares by which a straight way goes on past the last instant that is asked for."""


class GainsAlong(NamedTuple):
    """Average gains of some devices along their ways, one row per chord, [k], by device and then time."""

    place: Integers
    """Position of the chord's device among those asked for, rising."""
    begin_s: Floats
    end_s: Floats
    gain: Floats


@dataclass(frozen=True, eq=False)
class MovingPlaces(Places):
    """Places of devices that move, at any instant; a gain is that of the midpoint of the present chord."""

    chords: ChordsAhead
    gains: PlaceGains
    link: ShannonLink
    """The link of every station's band."""
    stations_m: Floats
    """Positions of the stations, [M, 2]."""
    min_distance_m: float
    how: Attach
    maps: RadioMaps | None = field(default=None)
    """The maps of shadowing and line of sight, where there are any."""

    @property
    def paths(self) -> Paths:
        """The paths of all devices."""
        return self.chords.paths

    @override
    def positions_m(self, ids: Integers, t_s: float) -> tuple[Floats, Floats]:
        return self.paths.positions(ids, t_s)

    @override
    def stations(self, ids: Integers, t_s: float) -> Integers:
        """Station that an idle device would join at an instant, [n]: that of the largest lasting gain, or the nearest.

        Nothing is remembered of idle devices.
        """
        count = len(self.stations_m)
        if count == 1:
            return np.zeros(len(ids), dtype=np.int64)
        x_m, y_m, gain = self.chords.present(ids, t_s)
        if self.how == "nearest":
            distance_m = [distances_m(self.stations_m, at, x_m, y_m, self.min_distance_m) for at in range(count)]
            return np.asarray(np.argmin(distance_m, axis=0))
        if gain is None:
            gain = self._lasting_gains(ids, x_m, y_m)
        return np.asarray(np.argmax(gain, axis=0))

    @override
    def distances_m(self, ids: Integers, t_s: float) -> Floats:
        x_m, y_m = self.paths.positions(ids, t_s)
        return distances_m(self.stations_m, self.stations(ids, t_s), x_m, y_m, self.min_distance_m)

    def gain(self, ids: Integers, draws: int | Integers, t_s: float, station: Integers) -> Floats:
        """Average power gain of each device to a station at an instant, linear, [n]."""
        x_m, y_m, gain = self.chords.present(ids, t_s)
        if gain is None:
            return self.gains.mean_power_gain(ids, draws, station, x_m, y_m)
        return gain[station, np.arange(len(ids))]

    def gains_along(
        self, ids: Integers, draws: int | Integers, station: Integers, t_s: Instants, end_s: Instants
    ) -> GainsAlong:
        """Average gains of each device to a station on its path, from the chord at ``t_s`` to the one before ``end_s``.

        ``end_s`` is above ``t_s``.
        """
        known = self.chords.gains_until(ids, station, t_s, end_s)
        if known is not None:
            return GainsAlong(*known)
        return self._along(ids, draws, station, self.chords.until(ids, t_s, end_s)[0])

    def gains_ahead(
        self, ids: Integers, draws: int | Integers, station: Integers, now_s: float, t_s: Floats, end_s: Floats
    ) -> GainsAlong:
        """As `gains_along`, where each device goes on for ever with the velocity that it has ``now_s``.

        Beyond the maps the gain is that of their edge.
        """
        return self._along(ids, draws, station, self._chords_ahead(ids, now_s, t_s, end_s))

    def _chords_ahead(self, ids: Integers, now_s: float, t_s: Floats, end_s: Floats) -> Chords:
        legs, side_m = self.paths.ahead(ids, now_s), self.chords.side_m
        speed_mps = np.hypot(legs.vx_mps, legs.vy_mps)
        with np.errstate(divide="ignore"):
            until_s = end_s + _BEYOND * side_m / speed_mps
        ways = Legs(legs.t0_s, until_s, legs.x0_m, legs.y0_m, legs.vx_mps, legs.vy_mps)
        chords = chords_of(ways, np.arange(len(ids)), t_s, end_s, side_m)
        if self.maps is not None:
            inside = self.maps.squares.nearest_inside(chords.x_m, chords.y_m)
            return Chords(chords.place, chords.begin_s, chords.end_s, *inside)
        return chords

    def next_handovers(
        self, rule: EventA3, ids: Integers, station: Integers, since_s: Floats | float, end_s: float, is_straight: bool
    ) -> Handovers:
        """The first handover of each device before an instant, by lasting gains on its path, [n].

        The condition counts from ``since_s`` on. With ``is_straight`` devices go on for ever with the velocity that
        they have then.
        """
        begins_s, ends_s = np.full(len(ids), since_s), np.full(len(ids), end_s)
        if is_straight:
            chords = self._chords_ahead(ids, float(np.min(since_s)), begins_s, ends_s)
        else:
            # Not of all devices: each is asked at instants of its own, and further ahead than its uploads.
            chords = chords_until(self.paths, ids, begins_s, ends_s, self.chords.side_m)
        ways = Ways(chords.place, chords.begin_s, chords.end_s, self.lasting_db(ids, chords))
        return next_handovers(rule, ways, stretches(rule, ways, station), station, begins_s)

    def lasting_db(self, ids: Integers, chords: Chords, gain: Floats | None = None) -> Floats:
        """Gains of chords to all stations in dB by which devices are handed over, [M, k]; ``gain`` if it is known."""
        x_m, y_m = chords.x_m, chords.y_m
        if self.how == "nearest":
            every_station = np.arange(len(self.stations_m))[:, None]
            gain = np.array([self.gains.law_power_gain(at, x_m, y_m) for at in every_station])
        elif gain is None:
            gain = self._lasting_gains(ids[chords.place], x_m, y_m)
        return db_from_ratio(gain)

    def _lasting_gains(self, ids: Integers, x_m: Floats, y_m: Floats) -> Floats:
        """Lasting gains of devices at places to all stations, [M, n]."""
        every_station = np.repeat(np.arange(len(self.stations_m))[:, None], len(ids), axis=1)
        return np.array([self.gains.lasting_power_gain(ids, at, x_m, y_m) for at in every_station])

    def facts(self) -> dict[str, Any]:
        """Facts for ``run.json``: the memory of the maps."""
        return {} if self.maps is None else {"maps_bytes": self.maps.nbytes}

    def _along(self, ids: Integers, draws: int | Integers, station: Integers, chords: Chords) -> GainsAlong:
        place = chords.place
        drawn_in = draws if isinstance(draws, int) else draws[place]
        gain = self.gains.mean_power_gain(ids[place], drawn_in, station[place], chords.x_m, chords.y_m)
        return GainsAlong(place, chords.begin_s, chords.end_s, gain)
