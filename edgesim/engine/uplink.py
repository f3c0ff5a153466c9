"""Uploads on a station's band, each on a reservation of its own."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Protocol

import simpy

from edgesim.engine.clock import Callback, Clock, EventKind, Instant
from edgesim.radio.link import ReservedLink


@dataclass(slots=True, eq=False)
class Upload:
    """One upload on the air; from its fields it can be put on the air again."""

    device: int
    rx_power_w: float
    weight_hz: float
    """The reservation; under re-sharing the weight of the upload's share."""
    remaining_bits: float
    deadline_s: float
    tolerance_s: float
    """Seconds from the deadline within which an end counts as the deadline itself."""
    since_s: float
    """Instant at which `remaining_bits` was brought up to date, in s; at first the upload's start."""
    bandwidth_hz: float = 0.0
    sent_bits: float = 0.0
    hertz_seconds: float = 0.0
    """Integral of the bandwidth over the airtime."""
    number: int = 0
    """Number of its task's draws."""
    handovers: int = 0
    """Handovers of its task so far, each of which fades anew."""

    def planned_end_s(self, end_s: float, now_s: float) -> float:
        """As `planned_end_s` of the module."""
        return planned_end_s(end_s, self.deadline_s, self.tolerance_s, now_s)

    def whole(self) -> None:
        """Count the remaining bits as sent."""
        self.sent_bits += self.remaining_bits
        self.remaining_bits = 0.0


def planned_end_s(end_s: float, deadline_s: float, tolerance_s: float, now_s: float) -> float:
    """Instant at which an upload ends whose computed end is ``end_s``, not before ``now_s``."""
    # Least bandwidths end uploads at the deadline itself, up to rounding: such an end is the deadline.
    return max(deadline_s, now_s) if abs(end_s - deadline_s) <= tolerance_s else end_s


Over = Callable[[bool], None]
"""Called at the end of an upload: with True when all bits are sent, with False when the device has left."""


class Band(Protocol):
    """The uplink of one station over time."""

    SAVED: ClassVar[tuple[str, ...]]
    """Attributes of the band itself that a snapshot holds."""

    def in_order(self) -> Sequence[Upload]:
        """Uploads on the air, brought up to date, if the band depends on their order; else none."""

    def begin(self, upload: Upload, over: Over) -> None:
        """Put an upload on the air from its ``since_s``: now, or earlier when restored from a record."""

    def end(self, upload: Upload) -> None:
        """Take an upload off the air, finished or not, and bring its counts up to date; calls nothing."""

    def drop(self, upload: Upload) -> None:
        """Drop the upload of a device that leaves now, unless it is over or ends within the tolerance."""


@dataclass
class ReservedBand:
    """Each upload keeps its reservation from its start to its end."""

    SAVED: ClassVar[tuple[str, ...]] = ()

    clock: Clock
    link: ReservedLink
    active: dict[Upload, Over] = field(default_factory=dict)

    def begin(self, upload: Upload, over: Over) -> None:
        """Put an upload on the air from its ``since_s``, and plan its end."""
        upload.bandwidth_hz = upload.weight_hz
        self.active[upload] = over
        end_s = self.link.end_s(
            upload.device, upload.bandwidth_hz, upload.rx_power_w, upload.remaining_bits, upload.since_s
        )
        if math.isinf(end_s):
            known_until_s = self.link.known_until_s(upload.device)
            end_of_record(self.clock, known_until_s, lambda _: self._need_known(upload))
            return
        end_s = upload.planned_end_s(end_s, upload.since_s)
        Instant(self.clock, end_s, EventKind.ARRIVED, upload.device).callbacks.append(partial(self._through, upload))

    def in_order(self) -> Sequence[Upload]:
        """No uploads: the order of reservations changes nothing."""
        return ()

    def end(self, upload: Upload) -> None:
        """Take an upload off the air, finished or not; its counts are brought up to date."""
        self._settle(upload)
        del self.active[upload]

    def _settle(self, upload: Upload) -> None:
        """Count the bits sent since the last call."""
        now_s = self.clock.now
        if now_s == upload.since_s:
            return
        sent = self.link.bits(upload.device, upload.bandwidth_hz, upload.rx_power_w, upload.since_s, now_s)
        sent = min(sent, upload.remaining_bits)
        upload.remaining_bits -= sent
        upload.sent_bits += sent
        upload.hertz_seconds += (now_s - upload.since_s) * upload.bandwidth_hz
        upload.since_s = now_s

    def _need_known(self, upload: Upload) -> None:
        if upload in self.active:
            self.link.need_known(upload.device, self.clock.now)

    def _through(self, upload: Upload, _: simpy.Event) -> None:
        if over := self.active.pop(upload, None):
            now_s = self.clock.now
            upload.hertz_seconds += (now_s - upload.since_s) * upload.bandwidth_hz
            upload.since_s = now_s
            upload.whole()
            over(True)

    def drop(self, upload: Upload) -> None:
        """Drop the upload of a device that leaves now, unless it is over or ends within the tolerance."""
        if (over := self.active.get(upload)) is None:
            return
        self._settle(upload)
        # As at the deadline, an upload that would end a rounding step later is over.
        now_s = self.clock.now
        soon = self.link.bits(upload.device, upload.bandwidth_hz, upload.rx_power_w, now_s, now_s + upload.tolerance_s)
        if upload.remaining_bits > soon:
            self.end(upload)
            over(False)


def end_of_record(clock: Clock, known_until_s: float, check: Callback) -> None:
    """Call ``check`` when the clock reaches the end of a link's record, for uploads that end beyond it."""
    if math.isfinite(known_until_s):
        clock.call_at(max(known_until_s, clock.now), EventKind.STOP, check)
