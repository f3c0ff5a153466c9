"""One station's band over time: uploads that keep their reservation, or share the band anew at every change."""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import simpy
from numpy.typing import NDArray

from edgesim.channels import Link
from edgesim.engine.clock import Clock, Kind

Floats = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Upload:
    """One upload on the air; everything but `over` could be written down and taken up again."""

    device: int
    rx_power_w: float
    weight_hz: float
    """The reservation; under re-sharing the weight of the upload's share."""
    remaining_bits: float
    deadline_s: float
    tolerance_s: float
    """How close to the deadline an end counts as the deadline itself."""
    over: simpy.Event
    """Happens when the last bit is through (True) or the device has left (False)."""
    since_s: float = 0.0
    """When `remaining_bits` was brought up to date."""
    bandwidth_hz: float = 0.0
    sent_bits: float = 0.0
    hertz_seconds: float = 0.0
    """Integral of the bandwidth over the airtime."""
    plan: int = 0
    """Number of the last plan of this upload's end; earlier ones are void."""


@dataclass
class Band:
    """The uplink of one station.

    ``reserved``: each upload keeps its reservation. ``reshared``: the active uploads split the whole band in
    proportion to their weights, again at every start, end and drop-out; what is left to send is carried over. With
    reservations that sum to at most the band nobody falls below its own.
    """

    clock: Clock
    bandwidth_hz: float
    link: Link
    sharing: Literal["reserved", "reshared"]
    active: list[Upload] = field(default_factory=list)

    def begin(self, upload: Upload) -> None:
        """Put an upload on the air now."""
        upload.since_s = self.clock.now
        self.active.append(upload)
        if self.sharing == "reserved":
            self._assign(upload, upload.weight_hz)
        else:
            self._share_anew()

    def end(self, upload: Upload) -> None:
        """Take an upload off the air, finished or not; its counts are brought up to date."""
        self._settle(upload)
        self.active.remove(upload)
        upload.plan += 1
        if self.sharing == "reshared":
            self._share_anew()

    def _share_anew(self) -> None:
        total_hz = sum(upload.weight_hz for upload in self.active)
        for upload in self.active:
            self._settle(upload)
            self._assign(upload, self.bandwidth_hz * upload.weight_hz / total_hz)

    def _settle(self, upload: Upload) -> None:
        """Count what went through since the last time."""
        now_s = self.clock.now
        if now_s == upload.since_s:
            return
        sent = self.link.bits(upload.device, upload.bandwidth_hz, upload.rx_power_w, upload.since_s, now_s)
        sent = min(sent, upload.remaining_bits)
        upload.remaining_bits -= sent
        upload.sent_bits += sent
        upload.hertz_seconds += (now_s - upload.since_s) * upload.bandwidth_hz
        upload.since_s = now_s

    def _assign(self, upload: Upload, bandwidth_hz: float) -> None:
        """Give an upload its bandwidth from now on and plan its end."""
        upload.bandwidth_hz = bandwidth_hz
        end_s = self.link.end_s(upload.device, bandwidth_hz, upload.rx_power_w, upload.remaining_bits, self.clock.now)
        # Least bandwidths end uploads at the deadline itself, up to rounding: such an end is the deadline.
        if abs(end_s - upload.deadline_s) <= upload.tolerance_s:
            end_s = max(upload.deadline_s, self.clock.now)
        upload.plan += 1
        if math.isinf(end_s):
            return
        plan = upload.plan
        callbacks = self.clock.at(end_s, Kind.ARRIVED, upload.device).callbacks
        assert callbacks is not None
        callbacks.append(lambda _: self._through(upload, plan))

    def _through(self, upload: Upload, plan: int) -> None:
        if plan != upload.plan:
            return
        self.end(upload)
        # The end was planned for the last bit: what rounding leaves over has gone through too.
        upload.sent_bits += upload.remaining_bits
        upload.remaining_bits = 0.0
        upload.over.succeed(True)

    def leave_at(self, upload: Upload, leaves_s: float) -> None:
        """The device leaves at an instant: if the upload is not over by then, it is dropped."""
        callbacks = self.clock.at(max(leaves_s, self.clock.now), Kind.LEFT, upload.device).callbacks
        assert callbacks is not None
        callbacks.append(lambda _: self._drop(upload))

    def _drop(self, upload: Upload) -> None:
        if upload not in self.active:
            return
        self._settle(upload)
        # As at the deadline, an end that misses the instant by rounding has not missed it.
        now_s = self.clock.now
        soon = self.link.bits(upload.device, upload.bandwidth_hz, upload.rx_power_w, now_s, now_s + upload.tolerance_s)
        if upload.remaining_bits > soon:
            self.end(upload)
            upload.over.succeed(False)
