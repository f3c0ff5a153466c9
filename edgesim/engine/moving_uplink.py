"""Uploads of devices that move: received powers along their ways, and bands on which these change."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import simpy
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.engine.moving_places import MovingPlaces
from edgesim.engine.shared_band import SharedBand
from edgesim.engine.uplink import Over, ReservedBand, Upload
from edgesim.engine.work import Task
from edgesim.engine.world import World
from edgesim.radio.course import Course
from edgesim.radio.fading import power_factor
from edgesim.radio.link import Known, ShannonLink
from edgesim.radio.pieces import Pieces

Key = tuple[int, ...]
"""Device, number of its draws, and station of an upload."""

_NEAREST_S, _FARTHEST_S = 1e-3, 600.0
"""Least and most seconds of a way that are looked at, to begin with."""


@dataclass
class Courses:
    """The courses of a run's uploads; those of uploads that are granted together are worked out together."""

    world: World
    moving: MovingPlaces
    _foreseen: dict[Key, Course] = field(default_factory=dict)
    """Courses of the last grants."""

    def foresee(self, tasks: Sequence[Task], t_s: float, due_s: float, tolerance_s: float) -> None:
        """Work out the courses of uploads that are granted at an instant, up to where they are due.

        Where they are due at no instant, as without rounds, each has its course worked out when it begins.
        """
        self._foreseen.clear()
        until_s = due_s + 2.0 * tolerance_s
        if math.isfinite(until_s) and until_s > t_s:
            keys = [(task.device, task.number, task.station) for task in tasks]
            ids, numbers, station = np.array(keys, dtype=np.int64).T
            courses = self._of(ids, numbers, station, np.full(len(keys), t_s), min(until_s, t_s + _FARTHEST_S))
            self._foreseen = dict(zip(keys, courses, strict=True))

    def of(self, uploads: Sequence[Upload], station: int, until_s: float) -> list[Course]:
        """Courses of uploads to a station from their ``since_s`` to an instant behind them."""
        courses = {}
        for upload in uploads:
            course = self._foreseen.get((upload.device, upload.number, station))
            if course is not None and course.edges_s.item(0) <= upload.since_s and until_s <= course.until_s:
                courses[upload] = course
        if missing := [upload for upload in uploads if upload not in courses]:
            ids = np.array([upload.device for upload in missing], dtype=np.int64)
            numbers = np.array([upload.number for upload in missing], dtype=np.int64)
            since_s = np.array([upload.since_s for upload in missing])
            stations = np.full(len(missing), station, dtype=np.int64)
            courses |= zip(missing, self._of(ids, numbers, stations, since_s, until_s), strict=True)
        return [courses[upload] for upload in uploads]

    def _of(self, ids: Integers, numbers: Integers, station: Integers, since_s: Floats, until_s: float) -> list[Course]:
        world = self.world
        along = self.moving.gains_along(ids, numbers, station, since_s, until_s)
        factor = power_factor(world.fading, world.streams, ids, numbers)
        rx_power_w = world.rx_power_w(ids[along.place], along.gain) * factor[along.place]
        whole = Pieces.of(along.place, along.begin_s, along.end_s, rx_power_w)
        return [Course(edges_s, power_w, until_s) for edges_s, power_w in whole.apart()]


def _horizons_s(
    link: ShannonLink, rx_power_w: Floats, weight_hz: Floats, left_bits: Floats, due_s: Floats, now_s: float
) -> Floats:
    """Instants up to which the ways of uploads are looked at first, in s, [n].

    They are when the uploads are due or, where these are expected to end far earlier, twice as far away as they would
    end on their reservations at the powers that they were granted for.
    """
    expected_s = 2.0 * left_bits / link.rates(weight_hz, rx_power_w)
    until_s = now_s + np.clip(expected_s, _NEAREST_S, _FARTHEST_S)
    return np.where(due_s > now_s, np.minimum(due_s, until_s), until_s)


def _later_s(since_s: float, now_s: float) -> float:
    """Instant up to which ways are looked at that were known until now, in s: three times as far away."""
    return now_s + max(2.0 * (now_s - since_s), _NEAREST_S)


@dataclass
class MovingLink(Known):
    """The uplink of a station over a band reserved by devices that move, each of which is followed on its course."""

    courses: Courses
    station: int
    link: ShannonLink
    _followed: dict[int, tuple[Upload, Course]] = field(default_factory=dict)
    """Uploads on the air, by device."""

    def follow(self, upload: Upload, until_s: float) -> None:
        """Work out the course of an upload from its ``since_s`` to an instant."""
        (course,) = self.courses.of([upload], self.station, until_s)
        self._followed[upload.device] = upload, course

    def leave(self, upload: Upload) -> None:
        """Follow an upload no more."""
        if self._followed[upload.device][0] is upload:
            del self._followed[upload.device]

    def bits(self, device: int, bandwidth_hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
        """Bits along the upload's course."""
        return self._followed[device][1].bits(self.link, bandwidth_hz, start_s, end_s)

    def end_s(self, device: int, bandwidth_hz: float, rx_power_w: float, bits: float, start_s: float) -> float:
        """Instant on the course at which the bits are carried; inf if not by its ``until_s``."""
        return self._followed[device][1].end_s(self.link, bandwidth_hz, bits, start_s)

    @override
    def known_until_s(self, device: int) -> float:
        return self._followed[device][1].until_s


@dataclass
class MovingReservedBand(ReservedBand):
    """Reservations of devices that move; no event where a gain changes.

    An upload whose end is not on the part of its course that is known is looked at again at the end of that part.
    """

    SAVED: ClassVar[tuple[str, ...]] = ()

    link: MovingLink

    @override
    def begin(self, upload: Upload, over: Over) -> None:
        since_s, due_s, bits = upload.since_s, upload.deadline_s + 2.0 * upload.tolerance_s, upload.remaining_bits
        # Twice as far away as it would end at the power that it was granted for, no further than it is due.
        link, granted = self.link.link, (upload.weight_hz, upload.rx_power_w)
        until_s = link.end_s(upload.device, *granted, 2.0 * bits, since_s)
        until_s = min(max(until_s, since_s + _NEAREST_S), since_s + _FARTHEST_S)
        self._begin(upload, over, min(due_s, until_s) if due_s > since_s else until_s)

    def _begin(self, upload: Upload, over: Over, until_s: float) -> None:
        # A resumed upload may have begun long ago.
        now_s = self.clock.now
        self.link.follow(upload, max(until_s, now_s + (now_s - upload.since_s)))
        super().begin(upload, over)

    @override
    def end(self, upload: Upload) -> None:
        super().end(upload)
        self.link.leave(upload)

    @override
    def _through(self, upload: Upload, _: simpy.Event) -> None:
        if over := self.active.pop(upload, None):
            self._settle(upload)
            upload.whole()
            self.link.leave(upload)
            over(True)

    @override
    def _need_known(self, upload: Upload) -> None:
        if upload in self.active:
            self._begin(upload, self.active[upload], _later_s(upload.since_s, self.clock.now))


@dataclass
class MovingSharedLink(Known):
    """The uplink of a station whose band devices that move share anew at every change."""

    link: ShannonLink
    pieces: Pieces = field(default_factory=lambda: Pieces(np.empty((0, 2)), np.empty((0, 1))))
    """Received powers of the uploads on the air, in the band's order, [n, k]."""
    until_s: float = -math.inf
    """Instant up to which all pieces are known; later ends are inf."""

    def rates(self, bandwidth_hz: Floats, rx_power_w: Floats) -> Floats:
        """Rates on each of the `pieces`, [n, k]."""
        return self.pieces.rates(self.link, bandwidth_hz)

    def bits_each(self, rates: Floats, start_s: float, end_s: float) -> Floats:
        """Sums of rates times airtime, [n]."""
        return self.pieces.bits_at(rates, start_s, end_s)

    def end_each_s(self, rates: Floats, bits: Floats, start_s: float) -> Floats:
        """Instants at which the sums reach the bits, [n]."""
        end_s = self.pieces.ends_at(rates, bits, start_s)
        return np.where(end_s <= self.until_s, end_s, np.inf)

    @override
    def known_until_s(self, device: int) -> float:
        return self.until_s


@dataclass
class MovingSharedBand(SharedBand):
    """A band that devices which move share anew at every start, end and drop-out, not where a gain changes.

    If nothing ends on the known parts of all courses, they are looked at again at the end of these parts.
    """

    SAVED: ClassVar[tuple[str, ...]] = ("_slack_s",)

    link: MovingSharedLink
    courses: Courses = field(kw_only=True)
    station: int = field(kw_only=True)
    _followed: dict[Upload, Course] = field(default_factory=dict)

    @override
    def _share_anew(self) -> None:
        if self.active:
            rx_power_w, weight_hz, left_bits = self._table[:3, : len(self.active)]
            due_s = np.array([upload.deadline_s for upload in self.active]) + self._slack_s
            until_s = float(_horizons_s(self.link.link, rx_power_w, weight_hz, left_bits, due_s, self._since_s).max())
            # Uploads of a resumed run may have begun long ago.
            self._look_until(max(until_s, self.clock.now + (self.clock.now - self._since_s)))
        super()._share_anew()

    def _look_until(self, until_s: float) -> None:
        """Let the link know the courses of the uploads on the air up to an instant."""
        short = [at for at in self.active if at not in self._followed or self._followed[at].until_s < until_s]
        courses = dict(zip(short, self.courses.of(short, self.station, until_s), strict=True))
        self._followed = {upload: courses.get(upload) or self._followed[upload] for upload in self.active}
        self.link.pieces = Pieces.together([(course.edges_s, course.rx_power_w) for course in self._followed.values()])
        self.link.until_s = until_s

    @override
    def _need_known(self, plan: int) -> None:
        if plan == self._plan:
            now_s = self.clock.now
            self._look_until(_later_s(self._since_s, now_s))
            super()._share_anew()
