"""Handovers of devices at work by event A3: a neighbour has been stronger than the own station for a while.

3GPP TS 38.331, 5.5.4.4, with the hysteresis at the entry alone.
"""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from edgesim.base.arrays import ComplexNumbers, Floats, Integers, pairs

ROUNDING_S = 1e-6
"""Seconds by which rounding cannot move the begin of a condition."""


@dataclass(frozen=True)
class EventA3:
    """When a device is handed over: a neighbour's gain minus the hysteresis exceeds the own one plus an offset."""

    hysteresis_db: float = 3.0
    offset_db: float = 0.0
    trigger_s: float = 0.256
    """Seconds for which that must hold without a break."""


@dataclass(frozen=True, eq=False)
class Ways:
    """Gains of some devices along their ways, one row per chord, [k], by device and then time, without gaps."""

    place: Integers
    """The device of each chord, each from 0 to n - 1."""
    begin_s: Floats
    end_s: Floats
    gain_db: Floats
    """Gains to all stations in dB, [stations, k]."""

    @cached_property
    def keys(self) -> ComplexNumbers:
        """Device and begin of each chord as `pairs`, [k]."""
        return pairs(self.place, self.begin_s)


@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches of ways on which a neighbour is strong enough without a break, and for long enough, [r]."""

    place: Integers
    """The device of each stretch."""
    station: Integers
    """The device's own station."""
    taker: Integers
    """The neighbour."""
    begin_s: Floats
    end_s: Floats


@dataclass(frozen=True, eq=False)
class Handovers:
    """The next handover of some devices, [n]."""

    t_s: Floats
    """Instant, in s; inf where the chords have none."""
    station: Integers
    """The station that takes over; of no meaning without a handover, as the gains."""
    gain_from_db: Floats
    """Gain to the own station at the instant, in dB."""
    gain_to_db: Floats


def stretches(rule: EventA3, ways: Ways, station: Integers) -> Stretches:
    """The stretches of devices whose own stations are ``station``, [n]."""
    chords, own = np.arange(len(ways.place)), station[ways.place]
    holds = ways.gain_db - rule.hysteresis_db > ways.gain_db[own, chords] + rule.offset_db
    holds[own, chords] = False
    goes_on = holds[:, 1:] & holds[:, :-1] & (ways.place[1:] == ways.place[:-1])
    begins, ends = holds.copy(), holds
    begins[:, 1:] &= ~goes_on
    ends[:, :-1] &= ~goes_on
    (taker, first), last = begins.nonzero(), ends.nonzero()[1]
    long = (ways.begin_s[first] + rule.trigger_s < ways.end_s[last]).nonzero()[0]
    first, last = first[long], last[long]
    return Stretches(ways.place[first], own[first], taker[long], ways.begin_s[first], ways.end_s[last])


def between_all(rule: EventA3, ways: Ways) -> Stretches:
    """The stretches of devices with any own station."""
    count = int(ways.place.max(initial=-1)) + 1
    every = [stretches(rule, ways, np.full(count, station)) for station in range(len(ways.gain_db))]
    names = [field.name for field in fields(Stretches)]
    return Stretches(*(np.concatenate([getattr(of, name) for of in every]) for name in names))


def next_handovers(rule: EventA3, ways: Ways, of: Stretches, station: Integers, since_s: Floats) -> Handovers:
    """The first handover of each device on its way, by the stretches ``of`` the own stations ``station``, [n].

    The condition counts from ``since_s`` [n] on: the begin of the work, or the last handover; not before the first
    chords. Each neighbour's time runs by itself; of several whose time is over at one instant the strongest takes over,
    of equally strong ones the first. ``of`` may have stretches of other stations, too.
    """
    over_s = np.maximum(of.begin_s, since_s[of.place]) + rule.trigger_s
    over_s[(over_s >= of.end_s) | (of.station != station[of.place])] = np.inf
    first_s, taker, (from_db, to_db) = np.full(len(station), np.inf), station.copy(), np.zeros((2, len(station)))
    np.minimum.at(first_s, of.place, over_s)
    rows = ((over_s == first_s[of.place]) & (over_s < np.inf)).nonzero()[0]
    place, takers = of.place[rows], of.taker[rows]
    chord = ways.keys.searchsorted(pairs(place, over_s[rows]), "right") - 1
    gain_db = ways.gain_db[takers, chord]
    # Written from the weakest to the strongest, so that this one stays.
    order = np.lexsort((-takers, gain_db))
    place, chord, takers = place[order], chord[order], takers[order]
    taker[place], from_db[place], to_db[place] = takers, ways.gain_db[station[place], chord], gain_db[order]
    return Handovers(first_s, taker, from_db, to_db)
