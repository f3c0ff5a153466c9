"""One station's band, shared anew whenever an upload begins or ends."""

from dataclasses import dataclass, field

import numpy as np

from edgesim.arrays import Floats
from edgesim.channels import SharedLink
from edgesim.engine.clock import Clock, Kind
from edgesim.engine.uplink import Upload, drop_at, end_of_record


@dataclass
class SharedBand:
    """The active uploads split the whole band in proportion to their weights, again at every start, end and drop-out.

    What is left to send is carried over. With reservations that sum to at most the band, no share is below its own.
    Only the next end is planned, so a change costs array operations over the active uploads.
    """

    clock: Clock
    bandwidth_hz: float
    link: SharedLink
    active: list[Upload] = field(default_factory=list)
    _columns: Floats = field(default_factory=lambda: np.empty((4, 0)))
    """Received power, weight, deadline and tolerance of the active uploads, [4, n]."""
    _hz: Floats = field(default_factory=lambda: np.empty(0))
    """Bandwidths since the last change, [n]."""
    _left_bits: Floats = field(default_factory=lambda: np.empty(0))
    _sent_bits: Floats = field(default_factory=lambda: np.empty(0))
    _hertz_seconds: Floats = field(default_factory=lambda: np.empty(0))
    _since_s: float = 0.0
    """When the uploads were brought up to date."""
    _plan: int = 0
    """Number of the last plan of the next end; earlier ones are void."""

    def begin(self, upload: Upload) -> None:
        """Put an upload on the air from its ``since_s``; where that is before now, all others are as of then too."""
        upload.over = self.clock.event()
        self._settle(upload.since_s)
        self.active.append(upload)
        column = [upload.rx_power_w, upload.weight_hz, upload.deadline_s, upload.tolerance_s]
        self._columns = np.column_stack([self._columns, column])
        self._left_bits = np.append(self._left_bits, upload.remaining_bits)
        self._sent_bits = np.append(self._sent_bits, upload.sent_bits)
        self._hertz_seconds = np.append(self._hertz_seconds, upload.hertz_seconds)
        self._share_anew()

    def end(self, upload: Upload) -> None:
        """Take an upload off the air, finished or not; its counts are brought up to date."""
        self._settle(self.clock.now)
        self.write_down(upload)
        row = self.active.index(upload)
        del self.active[row]
        self._columns = np.delete(self._columns, row, axis=1)
        self._left_bits, self._sent_bits, self._hertz_seconds = (
            np.delete(values, row) for values in (self._left_bits, self._sent_bits, self._hertz_seconds)
        )
        self._share_anew()

    def write_down(self, upload: Upload) -> None:
        """Bring the counts of an upload on the air up to the band's last change."""
        row = self.active.index(upload)
        upload.since_s = self._since_s
        upload.remaining_bits = float(self._left_bits[row])
        upload.sent_bits = float(self._sent_bits[row])
        upload.hertz_seconds = float(self._hertz_seconds[row])

    def leave_at(self, upload: Upload, leaves_s: float) -> None:
        """The device leaves at an instant: if the upload is not over by then, it is dropped."""
        drop_at(self.clock, upload, leaves_s, self._drop)

    def _settle(self, now_s: float) -> None:
        """Count what went through since the last change."""
        if self.active and now_s > self._since_s:
            sent = self.link.bits_each(self._hz, self._columns[0], self._since_s, now_s)
            sent = np.minimum(sent, self._left_bits)
            self._left_bits = self._left_bits - sent
            self._sent_bits = self._sent_bits + sent
            self._hertz_seconds = self._hertz_seconds + (now_s - self._since_s) * self._hz
        self._since_s = now_s

    def _share_anew(self) -> None:
        """Give every active upload its share from now on and plan the first end."""
        self._plan += 1
        if not self.active:
            self._hz = np.empty(0)
            return
        now_s, (rx_power_w, weight_hz, deadline_s, tolerance_s) = self._since_s, self._columns
        self._hz = self.bandwidth_hz * weight_hz / weight_hz.sum()
        end_s = self.link.end_each_s(self._hz, rx_power_w, self._left_bits, now_s)
        plan = self._plan
        if np.isinf(end_s).all():
            known_until_s = self.link.known_until_s(self.active[0].device)
            end_of_record(self.clock, known_until_s, lambda _: self._need_known(plan))
            return
        # Least bandwidths end uploads at the deadline itself, up to rounding: such an end is the deadline.
        with np.errstate(invalid="ignore"):  # an end that never comes, and no deadline
            end_s = np.where(np.abs(end_s - deadline_s) <= tolerance_s, np.maximum(deadline_s, now_s), end_s)
        first = np.flatnonzero(end_s == end_s.min())
        upload = min((self.active[row] for row in first), key=lambda one: one.device)
        # Uploads that began before now are added one by one; a plan made in between may lie in the past.
        first_s = max(float(end_s.min()), self.clock.now)
        self.clock.call_at(first_s, Kind.ARRIVED, lambda _: self._through(upload, plan), upload.device)

    def _need_known(self, plan: int) -> None:
        if plan == self._plan:
            self.link.need_known(self.active[0].device, self.clock.now)

    def _through(self, upload: Upload, plan: int) -> None:
        if plan != self._plan:
            return
        self.end(upload)
        upload.whole()

    def _drop(self, upload: Upload) -> None:
        if upload not in self.active:
            return
        self._settle(self.clock.now)
        row = self.active.index(upload)
        # As at the deadline, an upload that would end a rounding step later is over.
        now_s = self.clock.now
        soon = self.link.bits_each(
            self._hz[row : row + 1], self._columns[0, row : row + 1], now_s, now_s + upload.tolerance_s
        )
        if self._left_bits[row] > soon[0]:
            self.end(upload)
            upload.over.succeed(False)
