"""Handovers of devices at work by event A3: a neighbour has been stronger than the own station for a while.

3GPP TS 38.331, 5.5.4.4, with the hysteresis at the entry alone.
"""

from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Floats, Integers

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
class Handovers:
    """The next handover of some devices, [n]."""

    t_s: Floats
    """Instant, in s; inf where the chords have none."""
    station: Integers
    """The station that takes over; of no meaning without a handover, as the gains."""
    gain_from_db: Floats
    """Gain to the own station at the instant, in dB."""
    gain_to_db: Floats


def next_handovers(
    rule: EventA3, place: Integers, begin_s: Floats, end_s: Floats, gain_db: Floats, station: Integers, since_s: Floats
) -> Handovers:
    """The first handover of each device on some chords of its way, by the gains on each.

    ``place`` [k] is the device of each chord, each from 0 to n - 1, rising; ``begin_s`` and ``end_s`` [k] follow one
    another without gaps. ``gain_db`` [stations, k] are gains in dB, ``station`` [n] the own stations, and ``since_s``
    [n] the instants, not before the first chords, from which on the condition counts: the begin of the work, or the
    last handover. Each neighbour's time runs by itself; of several whose time is over at one instant the strongest
    takes over, of equally strong ones the first.
    """
    chords = np.arange(len(place))
    own = station[place]
    own_db = gain_db[own, chords]
    holds = gain_db - rule.hysteresis_db > own_db + rule.offset_db
    holds[own, chords] = False
    first = np.searchsorted(place, np.arange(len(station)))
    goes_on = np.zeros_like(holds)
    goes_on[:, 1:] = holds[:, :-1]
    goes_on[:, first] = False
    # Chord at which the condition began to hold that holds on each chord.
    since = np.maximum.accumulate(np.where(goes_on, 0, chords), axis=1)
    over_s = np.maximum(begin_s[since], since_s[place]) + rule.trigger_s
    over_s = np.where(holds & (over_s < end_s), over_s, np.inf)
    first_s = over_s.min(axis=0)
    taker = np.where(over_s == first_s, gain_db, -np.inf).argmax(axis=0)
    t_s = np.minimum.reduceat(first_s, first)
    # The condition may hold on in later chords; the handover is in the first one.
    at = np.minimum.reduceat(np.where(first_s == t_s[place], chords, len(chords)), first)
    return Handovers(t_s, taker[at], own_db[at], gain_db[taker[at], at])
