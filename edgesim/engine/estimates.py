"""Estimates that selectors can ask for before a round."""

from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.engine.decision import Timeline

_AT_ONCE = 1 << 10


@dataclass(frozen=True)
class PlannedEstimates:
    """`edgesim.selection.view.Estimates` from the timeline that the scheduler plans with."""

    timeline: Timeline
    """Timeline of the view's candidates, [n]."""
    bands_hz: Floats
    """Free bands of the stations, [M]."""
    count: int | None
    """Devices to be taken at most, where the admission counts."""

    def places(self) -> int:
        """Most candidates that the admission can take."""
        if self.count is not None:
            return min(self.count, len(self.timeline.ids))
        needs_hz = np.asarray(self.timeline.need_hz)
        places = 0
        for station, band_hz in enumerate(self.bands_hz.tolist()):
            there = np.sort(needs_hz[self.timeline.station == station])
            places += int(np.searchsorted(np.cumsum(there), band_hz, "right"))
        return places

    def download_s(self, rows: Integers) -> Floats:
        """Seconds that each download takes, [n]."""
        return self.timeline.download_s(rows)

    def ready_s(self, rows: Integers) -> Floats:
        """Instant, in s, at which each upload can begin, [n]."""
        return np.asarray(self.timeline.ready_s[rows])

    def due_s(self, rows: Integers) -> Floats:
        """Instant, in s, by which each upload must have ended, [n]."""
        return np.asarray(self.timeline.due_s[self.timeline.station[rows]])

    def upload_s(self, rows: Integers, at_once: int) -> Floats:
        """Payload over the mean rate of an equal share of the station's band, on the gain planned on, [n]."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.timeline.upload_bits[rows] / self._share_bps(rows, at_once))

    def finish_s(self, rows: Integers, at_once: int) -> Floats:
        """Instant, in s, at which each whole upload ends on that share, [n].

        All of a stream counts, whatever it is planned with; an upload of a size that fits lasts until it is due.
        """
        charges, ready_s, bits = self.timeline.accounts.up, self.ready_s(rows), self.timeline.upload_bits[rows]
        if charges is not None and charges.rule.known == "as the upload ends":
            _, bits = charges.granted(bits, None)
        with np.errstate(divide="ignore"):
            finish_s = np.asarray(ready_s + bits / self._share_bps(rows, at_once))
        fits = charges is not None and charges.rule.known in ("with the band", "as the upload begins")
        return np.maximum(finish_s, self.due_s(rows)) if fits else finish_s

    def room_bits(self, rows: Integers, at_once: int) -> Floats:
        """Bits that an equal share of the station's band carries until each upload is due, on the gain planned on, [n].

        0 for uploads that cannot begin in time.
        """
        left_s = np.maximum(self.due_s(rows) - self.ready_s(rows), 0.0)
        return np.asarray(self._share_bps(rows, at_once) * left_s)

    def _share_bps(self, rows: Integers, at_once: int) -> Floats:
        """Mean rate of each upload, [n], until the deadline when so many share the stations' bands equally."""
        ids, start_s, world = self.timeline.ids[rows], self.timeline.t_start_s, self.timeline.world
        end_s = start_s + float(self.timeline.due_s.max())
        share = min(1.0, len(self.bands_hz) / max(at_once, 1))
        rx_power_w = self.timeline.rx_power_w[rows]
        bps = np.empty(len(rows))
        for station, there in world.by_station(self.timeline.station[rows]):
            link, band_hz = self.timeline.links[station], share * float(world.bands_hz[station])
            bps[there] = link.mean_bps(ids[there], band_hz, rx_power_w[there], start_s, end_s)
        return bps

    def leaves_s(self, rows: Integers, horizon_s: float) -> Floats:
        """Instant, in s, at which each device's present stay ends, [n]."""
        start_s = self.timeline.t_start_s
        availability = self.timeline.world.availability
        until_s = availability.available_until(self.timeline.ids[rows], start_s, start_s + horizon_s)
        return np.asarray(until_s - start_s)

    def leaves_cell_s(self, rows: Integers, horizon_s: float) -> Floats:
        """Instant, in s, at which event A3 would hand each device over, [n]."""
        world, start_s = self.timeline.world, self.timeline.t_start_s
        leaves_s, knowledge = np.full(len(rows), np.inf), world.config.round.path_knowledge
        if world.moving is None or len(self.bands_hz) == 1 or knowledge in (None, "present"):
            return leaves_s
        until_s, is_straight = start_s + horizon_s, knowledge == "straight"
        # In parts, since each has the chords of all its ways to all stations.
        for begin in range(0, len(rows), _AT_ONCE):
            some = rows[begin : begin + _AT_ONCE]
            of = self.timeline.ids[some], self.timeline.station[some], start_s, until_s, is_straight
            t_s = world.moving.next_handovers(world.handover_rule, *of).t_s
            leaves_s[begin : begin + _AT_ONCE] = np.where(t_s < until_s, t_s - start_s, np.inf)
        return leaves_s
