"""Handovers that lie ahead of devices at work."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.devices.event_a3 import EventA3, Stretches, Ways, between_all, next_handovers, stretches
from edgesim.engine.moving_places import FEW_STATIONS, MovingPlaces
from edgesim.mobility.chords import Chords


class Handover(NamedTuple):
    """A handover of one device: its instant, in s, and the station that takes over, with the gains then in dB."""

    t_s: float
    station: int
    gain_from_db: float
    gain_to_db: float


@dataclass
class HandoverSearch:
    """Looks for handovers; where chords are known ahead, in the stretches of all devices between all stations."""

    moving: MovingPlaces
    rule: EventA3
    _chords: Chords | None = None
    """The chords ahead to which the others belong."""
    _known: tuple[Ways, Stretches] | None = None

    def until(self, ids: Integers, station: Integers, since_s: Floats, end_s: float) -> list[list[Handover]]:
        """All handovers of each device before an instant, in order of time, as `next_handovers` finds each of them."""
        known = self._everyone(ids, float(since_s.min()), end_s)
        if known is None:
            ways, of = self._ways(ids, *self.moving.chords.until(ids, since_s, end_s)), None
            place, count = np.arange(len(ids)), len(ids)
        else:
            (ways, of), place, count = known, ids, self.moving.chords.count
        # Devices that nobody has asked for are handed over at no instant.
        own, from_s = np.zeros(count, dtype=np.int64), np.full(count, np.inf)
        own[place], from_s[place] = station, since_s
        ahead: list[list[Handover]] = [[] for _ in range(count)]
        while True:
            among = stretches(self.rule, ways, own) if of is None else of
            found = next_handovers(self.rule, ways, among, own, from_s)
            more = (found.t_s < end_s).nonzero()[0]
            if not len(more):
                return [ahead[row] for row in place.tolist()]
            from_s.fill(np.inf)
            own[more], from_s[more] = found.station[more], found.t_s[more]
            columns = from_s[more], own[more], found.gain_from_db[more], found.gain_to_db[more]
            for row, *values in zip(more.tolist(), *(column.tolist() for column in columns), strict=True):
                ahead[row].append(Handover(*values))

    def _everyone(self, ids: Integers, t_s: float, end_s: float) -> tuple[Ways, Stretches] | None:
        """The ways of all devices between two instants and their stretches; None where the chords are not known."""
        if len(self.moving.stations_m) > FEW_STATIONS:
            return None
        known = self.moving.chords.everyone(ids, t_s, end_s)
        if known is None:
            return None
        chords, gains = known
        if chords is not self._chords:
            ways = self._ways(np.arange(self.moving.chords.count), chords, gains)
            self._chords, self._known = chords, (ways, between_all(self.rule, ways))
        return self._known

    def _ways(self, ids: Integers, chords: Chords, gains: Floats | None) -> Ways:
        return Ways(chords.place, chords.begin_s, chords.end_s, self.moving.lasting_db(ids, chords, gains))
