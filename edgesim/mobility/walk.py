"""Paths that are drawn leg by leg; each device keeps the leg that was last asked for, and its number."""

from typing import Protocol

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.mobility.legs import Instants, Legs, joined
from edgesim.mobility.paths import Box, Ground, Paths
from edgesim.streams import Streams

_AT_ONCE = 1 << 16


class LegLaw(Protocol):
    """A law of motion: each leg is a function of the device, of the leg's number and of the leg before it."""

    def first_legs(self, ids: Integers, ground: Ground, streams: Streams) -> Legs:
        """The legs of number 0 of some devices, which begin at 0 s, [n]."""

    def next_legs(self, ids: Integers, number: Integers, before: Legs, ground: Ground, streams: Streams) -> Legs:
        """The legs of a ``number`` above 0 of some devices, which begin where and when those ``before`` end, [n]."""


class Walk(Paths):
    """The `Paths` of a `LegLaw`: 52 bytes a device, of which nothing is drawn before the device is asked for."""

    def __init__(self, law: LegLaw, ground: Ground, streams: Streams) -> None:
        self.law, self._ground, self._streams = law, ground, streams
        self._number = np.full(len(ground), -1, dtype=np.int32)
        """Number of each device's leg; -1 before its first one."""
        self._legs = Legs(*np.zeros((6, len(ground))))
        self._drawn: tuple[Integers, Integers, Legs] | None = None
        """Device, number and leg of the last plan that was asked for all devices, where it has few legs."""

    @property
    @override
    def box(self) -> Box:
        radius_m = self._ground.radius_m
        return Box(-radius_m, radius_m, -radius_m, radius_m)

    @override
    def legs(self, ids: Integers, t_s: Instants) -> Legs:
        self._keep_up(ids, t_s)
        # Of all devices no copies are made, which would take most of the time.
        if self._is_everybody(ids) and (self._legs.t0_s <= t_s).all():
            return self._legs
        return self.ahead(ids, t_s)

    @override
    def ahead(self, ids: Integers, t_s: Instants) -> Legs:
        return self._walked(ids, t_s)[1]

    @override
    def positions(self, ids: Integers, t_s: Instants) -> tuple[Floats, Floats]:
        return self.legs(ids, t_s).at(t_s)

    def _is_everybody(self, ids: Integers) -> bool:
        return len(ids) == len(self._ground) and np.array_equal(ids, np.arange(len(ids)))

    @override
    def legs_until(self, ids: Integers, t_s: Instants, end_s: Instants) -> tuple[Integers, Legs]:
        place, end_s = np.arange(len(ids)), np.broadcast_to(end_s, len(ids))
        number, legs = self._walked(ids, t_s)
        places, numbers, parts = [place], [number], [legs]
        while len(rows := (legs.t1_s < end_s[place]).nonzero()[0]):
            place, number = place[rows], number[rows] + 1
            legs = self.law.next_legs(ids[place], number, legs.rows(rows), self._ground, self._streams)
            places.append(place)
            numbers.append(number)
            parts.append(legs)
        if len(parts) > 1:
            place, number = np.concatenate(places), np.concatenate(numbers)
            order = np.argsort(place, kind="stable")
            place, number, legs = place[order], number[order], joined(parts).rows(order)
        if len(legs) <= _AT_ONCE and self._is_everybody(ids):
            self._drawn = place, number, legs
        return place, legs

    def _keep_up(self, ids: Integers, t_s: Instants) -> None:
        """Draw the legs that have begun by an instant and are not drawn yet, and keep the last one of each device."""
        everybody = self._is_everybody(ids)
        if everybody and self._drawn is not None:
            device, number, legs = self._drawn
            begun = np.flatnonzero(legs.t0_s <= np.min(t_s))
            # Of the legs of one device the last one stays.
            self._number[device[begun]] = number[begun]
            _put(self._legs, device[begun], legs.rows(begun))
            self._drawn = None
        until_s = self._legs.t1_s if everybody else self._legs.t1_s[ids]
        due = np.flatnonzero(until_s <= t_s)
        # In parts whose arrays fit into the processor's cache.
        for begin in range(0, len(due), _AT_ONCE):
            rows = due[begin : begin + _AT_ONCE]
            number, legs = self._walked(ids[rows], np.broadcast_to(t_s, len(ids))[rows])
            self._number[ids[rows]] = number
            _put(self._legs, ids[rows], legs)

    def _walked(self, ids: Integers, t_s: Instants) -> tuple[Integers, Legs]:
        """Number and leg of each device at an instant, before or after the leg that it keeps, [n]."""
        t_s = np.broadcast_to(t_s, len(ids))
        number, legs = self._number[ids].astype(np.int64), self._legs.rows(ids)
        anew = np.flatnonzero((number < 0) | (t_s < legs.t0_s))
        if len(anew):
            number[anew] = 0
            _put(legs, anew, self.law.first_legs(ids[anew], self._ground, self._streams))
        ended = np.flatnonzero(legs.t1_s <= t_s)
        while len(ended):
            number[ended] += 1
            before = legs.rows(ended)
            later = self.law.next_legs(ids[ended], number[ended], before, self._ground, self._streams)
            _put(legs, ended, later)
            ended = ended[later.t1_s <= t_s[ended]]
        return number, legs


def _put(legs: Legs, rows: Integers, others: Legs) -> None:
    for column, values in zip(legs.columns, others.columns, strict=True):
        column[rows] = values
