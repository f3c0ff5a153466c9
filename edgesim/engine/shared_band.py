"""One station's band, shared anew whenever an upload begins or ends."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from edgesim.base.arrays import Floats
from edgesim.engine.clock import Clock, EventKind
from edgesim.engine.uplink import Over, Upload, end_of_record
from edgesim.radio.link import SharedLink

_PLACES = 16
"""Uploads that there is memory for to begin with."""


@dataclass
class SharedBand:
    """The active uploads split the whole band in proportion to their weights, again at every start, end and drop-out.

    What is left to send is carried over. With reservations that sum to at most the band, no share is below its own.
    Only the next end is planned, so a change costs array operations over the active uploads.
    """

    SAVED: ClassVar[tuple[str, ...]] = ("_slack_s",)

    clock: Clock
    bandwidth_hz: float
    link: SharedLink
    active: list[Upload] = field(default_factory=list)
    _over: dict[Upload, Over] = field(default_factory=dict)
    _table: Floats = field(default_factory=lambda: np.empty((5, _PLACES)))
    """Received power, weight, bits left, bits sent, hertz seconds of the active uploads; then free places, [5, m]."""
    _rows: tuple[Floats, ...] = ()
    """Views on the table's rows without the free places, 5 of [n]: to make them takes a tenth of a change's time."""
    _hz: Floats = field(default_factory=lambda: np.empty(0))
    """Bandwidths since the last change, [n]."""
    _rates: Floats = field(default_factory=lambda: np.empty(0))
    """Rates of these bandwidths as from `SharedLink.rates`, [n] or, over pieces of constant gain, [n, k]."""
    _since_s: float = 0.0
    """Instant at which the uploads were brought up to date, in s."""
    _slack_s: float = 0.0
    """Twice the greatest tolerance of an upload."""
    _plan: int = 0
    """Number of the last plan of the next end; earlier ones are void."""

    def begin(self, upload: Upload, over: Over) -> None:
        """Put an upload on the air from its ``since_s``; all others must be of that instant as well."""
        self._settle(upload.since_s)
        place = len(self.active)
        if place == self._table.shape[1]:
            self._table = np.hstack([self._table, np.empty_like(self._table)])
        counts = upload.remaining_bits, upload.sent_bits, upload.hertz_seconds
        self._table[:, place] = upload.rx_power_w, upload.weight_hz, *counts
        self._slack_s = max(self._slack_s, 2 * upload.tolerance_s)
        self.active.append(upload)
        self._over[upload] = over
        self._share_anew()

    def end(self, upload: Upload) -> None:
        """Take an upload off the air, finished or not; its counts are brought up to date."""
        self._settle(self.clock.now)
        self.write_down(upload)
        row = self.active.index(upload)
        del self.active[row], self._over[upload]
        # The others keep their order, on which the last bits of their weights' sum depend.
        count = len(self.active)
        self._table[:, row:count] = self._table[:, row + 1 : count + 1]
        self._share_anew()

    def in_order(self) -> list[Upload]:
        """Uploads on the air, brought up to date: they add up their weights in this order."""
        for upload in self.active:
            self.write_down(upload)
        return self.active

    def write_down(self, upload: Upload) -> None:
        """Bring the counts of an upload on the air up to the band's last change."""
        upload.since_s = self._since_s
        counts = self._table[2:, self.active.index(upload)].tolist()
        upload.remaining_bits, upload.sent_bits, upload.hertz_seconds = counts

    def _settle(self, now_s: float) -> None:
        """Count the bits sent since the last change."""
        if self.active and now_s > self._since_s:
            _, _, left_bits, sent_bits, hertz_seconds = self._rows
            sent = np.minimum(self.link.bits_each(self._rates, self._since_s, now_s), left_bits)
            left_bits -= sent
            sent_bits += sent
            hertz_seconds += (now_s - self._since_s) * self._hz
        self._since_s = now_s

    def _share_anew(self) -> None:
        """Give every active upload its share from now on and plan the first end."""
        self._plan += 1
        if not self.active:
            return
        now_s, plan = self._since_s, self._plan
        self._rows = rx_power_w, weight_hz, left_bits, _, _ = tuple(self._table[:, : len(self.active)])
        self._hz = self.bandwidth_hz * weight_hz / np.add.reduce(weight_hz)
        self._rates = self.link.rates(self._hz, rx_power_w)
        end_s = self.link.end_each_s(self._rates, left_bits, now_s)
        first_s = float(end_s[end_s.argmin()])
        if math.isinf(first_s):
            known_until_s = self.link.known_until_s(self.active[0].device)
            end_of_record(self.clock, known_until_s, lambda _: self._need_known(plan))
            return
        # Of ends that lie so close together, another may be first once those near a deadline are the deadline itself.
        close = (end_s <= first_s + self._slack_s).nonzero()[0].tolist()
        ends = [
            (self.active[row].planned_end_s(float(end_s[row]), now_s), self.active[row].device, row) for row in close
        ]
        first_s, device, row = min(ends)
        upload = self.active[row]
        # Uploads that began before now are added one by one; a plan made in between may lie in the past.
        self.clock.call_at(
            max(first_s, self.clock.now), EventKind.ARRIVED, lambda _: self._through(upload, plan), device
        )

    def _need_known(self, plan: int) -> None:
        if plan == self._plan:
            self.link.need_known(self.active[0].device, self.clock.now)

    def _through(self, upload: Upload, plan: int) -> None:
        if plan != self._plan:
            return
        over = self._over[upload]
        self.end(upload)
        upload.whole()
        over(True)

    def drop(self, upload: Upload) -> None:
        """Drop the upload of a device that leaves now, unless it is over or ends within the tolerance."""
        if upload not in self.active:
            return
        now_s = self.clock.now
        self._settle(now_s)
        row = self.active.index(upload)
        # As at the deadline, an upload that would end a rounding step later is over.
        soon = self.link.bits_each(self._rates, now_s, now_s + upload.tolerance_s)
        if self._table[2, row] > soon[row]:
            over = self._over[upload]
            self.end(upload)
            over(False)
