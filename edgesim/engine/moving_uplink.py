"""Uploads of devices that move: received powers along their ways, and bands on which these change."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
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
from edgesim.radio.pieces import Pieces, without_repeats

_NEAREST_S, _FARTHEST_S = 1e-3, 600.0
"""Least and most seconds of a way that are looked at, to begin with."""


@dataclass
class Courses:
    """The courses of a run's uploads; those of uploads that are granted together are worked out together."""

    world: World
    moving: MovingPlaces
    foreseen: dict[tuple[int, int], Course] = field(default_factory=dict)
    """Courses of the last grants, by device and number of its draws."""

    def foresee(self, tasks: Sequence[Task], t_s: float, due_s: float, tolerance_s: float) -> None:
        """Work out the courses of uploads that are granted at an instant, up to where they are due or expected to end.

        Where they are due at no instant, as without rounds, each has its course worked out when it begins.
        """
        self.foreseen.clear()
        due_s += 2.0 * tolerance_s
        if math.isinf(due_s) or due_s <= t_s:
            return
        ids, station = np.array([at.device for at in tasks]), np.array([at.station for at in tasks])
        numbers, weight_hz = np.array([at.number for at in tasks]), np.array([at.grant.bandwidth_hz for at in tasks])
        rx_power_w, bits = np.array([at.grant.rx_power_w for at in tasks]), np.array([at.grant.bits for at in tasks])
        waits_s = np.array([at.broadcast_s + at.download_s + at.compute_s for at in tasks])
        until_s = _horizons_s(self.moving.link, rx_power_w, weight_hz, bits, due_s, t_s + waits_s)
        until_s = np.minimum(until_s, min(due_s, t_s + _FARTHEST_S))
        courses = self._of(ids, numbers, station, weight_hz, np.full(len(ids), t_s), until_s)
        self.foreseen.update(zip([at.key for at in tasks], courses, strict=True))

    def of(self, uploads: Sequence[Upload], station: int, until_s: float) -> list[Course]:
        """Courses of uploads to a station from their ``since_s`` to an instant behind them."""
        columns = [(upload.device, upload.number, upload.weight_hz, upload.since_s) for upload in uploads]
        ids, numbers, weight_hz, since_s = np.array(columns).T
        stations, until_each_s = np.full(len(ids), station), np.full(len(ids), until_s)
        return self._of(ids.astype(np.int64), numbers.astype(np.int64), stations, weight_hz, since_s, until_each_s)

    def of_begun(self, upload: Upload, station: int, now_s: float) -> Course:
        """The course of an upload that begins: that of its grant, or one that is worked out now."""
        course = self.foreseen.get((upload.device, upload.number))
        if course is None or upload.since_s >= course.until_s:
            # Uploads of a resumed run may have begun long ago.
            until_s = _horizon_s(self.moving.link, upload, upload.deadline_s + 2.0 * upload.tolerance_s)
            (course,) = self.of([upload], station, max(until_s, now_s + (now_s - upload.since_s)))
        return course

    def _of(
        self, ids: Integers, numbers: Integers, station: Integers, weight_hz: Floats, since_s: Floats, until_s: Floats
    ) -> list[Course]:
        world = self.world
        along = self.moving.gains_along(ids, numbers, station, since_s, until_s)
        factor = power_factor(world.fading, world.streams, ids, numbers)
        rx_power_w = world.rx_power_w(ids[along.place], along.gain) * factor[along.place]
        kept, first, last = without_repeats(along.place, rx_power_w)
        rx_power_w = rx_power_w[kept]
        rates_bps = _rates_bps(self.moving.link, weight_hz[along.place[kept]], rx_power_w)
        begins_s, powers_w, rates = (column.tolist() for column in (along.begin_s[kept], rx_power_w, rates_bps))
        rows = zip(pairwise(first.tolist()), along.end_s[last].tolist(), until_s.tolist(), strict=True)
        return [
            Course([*begins_s[begin:end], end_s], powers_w[begin:end], rates[begin:end], known_s)
            for (begin, end), end_s, known_s in rows
        ]


def _rates_bps(link: ShannonLink, bandwidth_hz: Floats, rx_power_w: Floats) -> Floats:
    """Rates of bandwidths, in bit/s; 0 at 0 Hz."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bandwidth_hz > 0, link.rates(bandwidth_hz, rx_power_w), 0.0)


def _horizons_s(
    link: ShannonLink, rx_power_w: Floats, weight_hz: Floats, left_bits: Floats, due_s: Floats | float, now_s: Floats
) -> Floats:
    """Instants up to which the ways of uploads that begin ``now_s`` are looked at first, in s, [n].

    They are when the uploads are due or, where these are expected to end far earlier, twice as far away as they would
    end on their reservations at the powers that they were granted for.
    """
    with np.errstate(divide="ignore"):
        expected_s = 2.0 * left_bits / _rates_bps(link, weight_hz, rx_power_w)
    until_s = now_s + np.clip(expected_s, _NEAREST_S, _FARTHEST_S)
    return np.where(due_s > now_s, np.minimum(due_s, until_s), until_s)


def _horizon_s(link: ShannonLink, upload: Upload, due_s: float) -> float:
    """Instant up to which the way of an upload is looked at first, as `_horizons_s`."""
    rx_power_w, weight_hz, left_bits, since_s = np.array(
        [[upload.rx_power_w], [upload.weight_hz], [upload.remaining_bits], [upload.since_s]]
    )
    return float(_horizons_s(link, rx_power_w, weight_hz, left_bits, due_s, since_s)[0])


def _later_s(since_s: float, now_s: float) -> float:
    """Instant up to which ways are looked at that were known until now, in s: three times as far away."""
    return now_s + max(2.0 * (now_s - since_s), _NEAREST_S)


@dataclass
class MovingLink(Known):
    """The uplink of a station over a band reserved by devices that move, each of which is followed on its course."""

    courses: Courses
    station: int
    link: ShannonLink
    followed: dict[int, tuple[Upload, Course]] = field(default_factory=dict)
    """Uploads on the air, by device."""

    def leave(self, upload: Upload) -> None:
        """Follow an upload no more."""
        if self.followed[upload.device][0] is upload:
            del self.followed[upload.device]

    def bits(self, device: int, bandwidth_hz: float, rx_power_w: float, start_s: float, end_s: float) -> float:
        """Bits along the upload's course."""
        return self.followed[device][1].bits(self.link, bandwidth_hz, start_s, end_s)

    def end_s(self, device: int, bandwidth_hz: float, rx_power_w: float, bits: float, start_s: float) -> float:
        """Instant on the course at which the bits are carried; inf if not by its ``until_s``."""
        return self.followed[device][1].end_s(self.link, bandwidth_hz, bits, start_s)

    @override
    def known_until_s(self, device: int) -> float:
        return self.followed[device][1].until_s


@dataclass
class MovingReservedBand(ReservedBand):
    """Reservations of devices that move; no event where a gain changes.

    An upload whose end is not on the part of its course that is known is looked at again at the end of that part.
    """

    SAVED: ClassVar[tuple[str, ...]] = ()

    link: MovingLink

    @override
    def begin(self, upload: Upload, over: Over) -> None:
        self._follow(upload, over, self.link.courses.of_begun(upload, self.link.station, self.clock.now))

    def _follow(self, upload: Upload, over: Over, course: Course) -> None:
        """Put an upload on the air that is followed on a course."""
        self.link.followed[upload.device] = upload, course
        super().begin(upload, over)

    @override
    def end(self, upload: Upload) -> None:
        super().end(upload)
        self.link.leave(upload)

    @override
    def _through(self, upload: Upload, event: simpy.Event) -> None:
        if upload in self.active:
            super()._through(upload, event)
            self.link.leave(upload)

    @override
    def _need_known(self, upload: Upload) -> None:
        if upload in self.active:
            until_s = _later_s(upload.since_s, self.clock.now)
            (course,) = self.link.courses.of([upload], self.link.station, until_s)
            self._follow(upload, self.active[upload], course)


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
        on_air = [row for row, upload in enumerate(self._followed) if upload in self._over]
        if len(on_air) < len(self._followed):
            self.link.pieces = self.link.pieces.rows(on_air)
        # Uploads that begin come last.
        starting = self.active[len(on_air) :]
        begun = [self.courses.of_begun(upload, self.station, self.clock.now) for upload in starting]
        if begun:
            self.link.pieces = self.link.pieces.joined(_pieces_of(begun))
        courses = [course for upload, course in self._followed.items() if upload in self._over]
        self._followed = dict(zip(self.active, courses + begun, strict=True))
        self.link.until_s = min([course.until_s for course in self._followed.values()], default=-math.inf)
        super()._share_anew()

    @override
    def _need_known(self, plan: int) -> None:
        if plan == self._plan:
            until_s = _later_s(self._since_s, self.clock.now)
            short = [upload for upload, course in self._followed.items() if course.until_s < until_s]
            self._followed.update(zip(short, self.courses.of(short, self.station, until_s), strict=True))
            self.link.pieces = _pieces_of(self._followed.values())
            self._share_anew()


def _pieces_of(courses: Iterable[Course]) -> Pieces:
    return Pieces.together([(course.edges_s, course.rx_power_w) for course in courses])
