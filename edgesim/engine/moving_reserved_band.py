"""Bands reserved by devices that move: each upload is followed on its course, with no event where a gain changes."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import simpy
from typing_extensions import override

from edgesim.engine.clock import EventKind, Instant
from edgesim.engine.courses import Courses, later_s
from edgesim.engine.uplink import Over, ReservedBand, Upload
from edgesim.radio.course import Course
from edgesim.radio.link import Known, ShannonLink


@dataclass
class MovingReservedLink(Known):
    """The uplink of a station over a band reserved by devices that move."""

    link: ShannonLink
    followed: dict[int, Course] = field(default_factory=dict)
    """Courses of the uploads on the air, by device."""

    def bits(self, device: int, bandwidth_hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
        """Bits along the upload's course."""
        return self.followed[device].bits(self.link, bandwidth_hz, start_s, end_s)

    def end_s(self, device: int, bandwidth_hz: float, rx_power_w: float, bits: float, start_s: float) -> float:
        """Instant on the course at which the bits are carried; inf if not by its ``until_s``."""
        return self.followed[device].end_s(self.link, bandwidth_hz, bits, start_s)


@dataclass
class MovingReservedBand(ReservedBand):
    """An upload whose end is not on the known part of its course is looked at again at the end of that part."""

    SAVED: ClassVar[tuple[str, ...]] = ()

    link: MovingReservedLink
    courses: Courses = field(kw_only=True)
    station: int = field(kw_only=True)

    @override
    def begin(self, upload: Upload, over: Over) -> None:
        upload.bandwidth_hz = upload.weight_hz
        self.active[upload] = over
        self._follow(upload, self.courses.of_begun(upload, self.station, self.clock.now))

    def _follow(self, upload: Upload, course: Course) -> None:
        """Plan the end of an upload on the known part of its course, or another look at the end of that part."""
        self.link.followed[upload.device] = course
        device, hertz = upload.device, upload.bandwidth_hz
        end_s = course.end_s(self.link.link, hertz, upload.remaining_bits, upload.since_s)
        if end_s == math.inf:
            event = Instant(self.clock, max(course.until_s, self.clock.now), EventKind.STOP)
            event.callbacks.append(partial(self._look_on, upload))
        else:
            event = Instant(self.clock, upload.planned_end_s(end_s, upload.since_s), EventKind.ARRIVED, device)
            event.callbacks.append(partial(self._through, upload))

    @override
    def end(self, upload: Upload) -> None:
        super().end(upload)
        del self.link.followed[upload.device]

    @override
    def _through(self, upload: Upload, event: simpy.Event) -> None:
        if upload in self.active:
            # Before anybody hears of the end: the device may begin its next upload at once.
            del self.link.followed[upload.device]
            super()._through(upload, event)

    def _look_on(self, upload: Upload, _: simpy.Event) -> None:
        if upload in self.active:
            until_s = later_s(upload.since_s, self.clock.now)
            (course,) = self.courses.of([upload], self.station, until_s)
            self._follow(upload, course)
