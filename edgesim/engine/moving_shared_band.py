"""A band that devices which move share anew at every start, end and drop-out, not where a gain changes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.engine.courses import Courses, later_s
from edgesim.engine.shared_band import SharedBand
from edgesim.engine.uplink import Upload
from edgesim.radio.course import Course
from edgesim.radio.link import Known, ShannonLink
from edgesim.radio.pieces import Pieces


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
    """If nothing ends on the known parts of all courses, they are looked at again at the end of these parts."""

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
            until_s = later_s(self._since_s, self.clock.now)
            short = [upload for upload, course in self._followed.items() if course.until_s < until_s]
            self._followed.update(zip(short, self.courses.of(short, self.station, until_s), strict=True))
            self.link.pieces = _pieces_of(self._followed.values())
            self._share_anew()


def _pieces_of(courses: Iterable[Course]) -> Pieces:
    return Pieces.together([(course.edges_s, course.rx_power_w) for course in courses])
