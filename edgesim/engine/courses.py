"""Courses of the uploads of devices that move: received powers along their ways, as far as they are looked at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

import numpy as np

from edgesim.base.arrays import Floats, Integers, repeated
from edgesim.engine.handover_search import Handover
from edgesim.engine.moving_places import MovingPlaces
from edgesim.engine.uplink import Upload
from edgesim.engine.world import World
from edgesim.radio.course import Course, Planned, PowerPieces
from edgesim.radio.fading import power_factor
from edgesim.radio.link import ShannonLink
from edgesim.radio.pieces import without_repeats

_NEAREST_S, _FARTHEST_S = 1e-3, 600.0
"""Least and most seconds of a way that are looked at, to begin with."""


class Sending(NamedTuple):
    """Uploads that are granted together, [n] each."""

    device: Integers
    station: Integers
    handovers: Integers
    """Handovers so far."""
    bandwidth_hz: Floats
    rx_power_w: Floats
    bits: Floats
    start_s: Floats
    """When they begin, if nothing comes between."""


@dataclass
class Courses:
    """The courses of a run's uploads; those of uploads that are granted together are worked out together."""

    world: World
    moving: MovingPlaces
    foreseen: dict[tuple[int, int, int], Course] = field(default_factory=dict)
    """Courses of the last grants, by device, number of its draws and handovers."""

    def foresee(
        self, number: int, sending: Sending, instants_s: tuple[float, float, float], ahead: Sequence[Sequence[Handover]]
    ) -> None:
        """Work out the courses of uploads of one round, which are granted together, to where they are due or end.

        The ``number`` is that of the draws of their tasks. ``instants_s`` are those of the grant and the deadline, and
        its tolerance. ``ahead`` has the handovers that are expected of each, behind which its course is worked out,
        too; it is empty where tasks keep their stations. Where uploads are due at no instant, as without rounds, each
        has its course worked out when it begins.
        """
        t_s, deadline_s, tolerance_s = instants_s
        due_s = deadline_s + 2.0 * tolerance_s
        if math.isinf(due_s) or due_s <= t_s:
            self.foreseen = {}
            return
        ids, station, handovers, weight_hz, rx_power_w, bits, starts_s = sending
        count = len(ids)
        farthest_s = min(due_s, t_s + _FARTHEST_S)
        until_s = np.minimum(_horizons_s(self.moving.link, rx_power_w, weight_hz, bits, due_s, starts_s), farthest_s)
        all_until_s, since_s = until_s.tolist(), repeated(t_s, count)
        behind = [
            (row, more, to.station, to.t_s)
            for row, all_of_it in enumerate(ahead)
            for more, to in enumerate(all_of_it, 1)
            if to.t_s < all_until_s[row]
        ]
        if behind:
            row, more, cell, begins_s = (np.array(column) for column in zip(*behind, strict=True))
            ids, station = np.concatenate((ids, ids[row])), np.concatenate((station, cell))
            handovers, since_s = np.concatenate((handovers, handovers[row] + more)), np.concatenate((since_s, begins_s))
            until_s = np.concatenate((until_s, repeated(farthest_s, len(behind))))
        pieces = self._of(ids, number, station, since_s, until_s, handovers)
        planned: list[Planned | None] = [None] * len(ids)
        if weight_hz.all():
            # What an upload has sent is asked when its device is handed over, or at the deadline.
            stops_s = repeated(deadline_s, count)
            if ahead:
                stops_s = np.array([all_of_it[0].t_s if all_of_it else deadline_s for all_of_it in ahead])
            planned[:count] = pieces.plan(self.moving.link, weight_hz, bits, starts_s, stops_s)
        keys = zip(ids.tolist(), repeat(number), handovers.tolist(), strict=False)
        known = pieces.since_s, until_s.tolist(), planned
        courses = map(Course, repeat(pieces), range(len(ids)), station.tolist(), *known)
        self.foreseen = dict(zip(keys, courses, strict=True))

    def of(self, uploads: Sequence[Upload], station: int, until_s: float) -> list[Course]:
        """Courses of uploads to a station from their ``since_s`` to an instant behind them."""
        if not uploads:
            return []
        ids, numbers, handovers = np.array([(at.device, at.number, at.handovers) for at in uploads]).T
        since_s, until_each_s = np.array([at.since_s for at in uploads]), np.full(len(ids), until_s)
        pieces = self._of(ids, numbers, np.full(len(ids), station), since_s, until_each_s, handovers)
        return [Course(pieces, row, station, since, until_s) for row, since in enumerate(pieces.since_s)]

    def of_begun(self, upload: Upload, station: int, now_s: float) -> Course:
        """The course of an upload that begins: that of its grant, or one that is worked out now."""
        course = self.foreseen.get((upload.device, upload.number, upload.handovers))
        if course is None or not course.is_of(station, upload.since_s):
            # Uploads of a resumed run may have begun long ago.
            until_s = _horizon_s(self.moving.link, upload, upload.deadline_s + 2.0 * upload.tolerance_s)
            (course,) = self.of([upload], station, max(until_s, now_s + (now_s - upload.since_s)))
        return course

    def to_end(self, upload: Upload, station: int, until_s: float) -> Course:
        """The course of an upload that begins, to where it ends or beyond an instant."""
        course = self.of_begun(upload, station, upload.since_s)
        while course.until_s <= until_s and math.isinf(
            course.end_s(self.moving.link, upload.weight_hz, upload.remaining_bits, upload.since_s)
        ):
            (course,) = self.of([upload], station, later_s(upload.since_s, course.until_s))
        return course

    def _of(
        self,
        ids: Integers,
        numbers: int | Integers,
        station: Integers,
        since_s: Floats,
        until_s: Floats,
        handovers: Integers,
    ) -> PowerPieces:
        world = self.world
        along = self.moving.gains_along(ids, numbers, station, since_s, until_s)
        factor = power_factor(world.fading, world.streams, ids, numbers, handovers)
        rx_power_w = world.rx_power_w(ids[along.place], along.gain) * factor[along.place]
        kept, first, last = without_repeats(along.place, rx_power_w)
        return PowerPieces(along.begin_s[kept], rx_power_w[kept], first, along.end_s[last])


def _horizons_s(
    link: ShannonLink, rx_power_w: Floats, weight_hz: Floats, left_bits: Floats, due_s: Floats | float, now_s: Floats
) -> Floats:
    """Instants up to which the ways of uploads that begin ``now_s`` are looked at first, in s, [n].

    They are when the uploads are due or, where these are expected to end far earlier, twice as far away as they would
    end on their reservations at the powers that they were granted for.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rates_bps = link.rates(weight_hz, rx_power_w)
        # At 0 Hz the rate is 0.
        rates_bps[weight_hz == 0] = 0.0
        expected_s = 2.0 * left_bits / rates_bps
    until_s = now_s + np.minimum(np.maximum(expected_s, _NEAREST_S), _FARTHEST_S)
    return np.where(due_s > now_s, np.minimum(due_s, until_s), until_s)


def _horizon_s(link: ShannonLink, upload: Upload, due_s: float) -> float:
    """Instant up to which the way of an upload is looked at first, as `_horizons_s`."""
    rx_power_w, weight_hz, left_bits, since_s = np.array(
        [[upload.rx_power_w], [upload.weight_hz], [upload.remaining_bits], [upload.since_s]]
    )
    return float(_horizons_s(link, rx_power_w, weight_hz, left_bits, due_s, since_s)[0])


def later_s(since_s: float, now_s: float) -> float:
    """Instant up to which ways are looked at that were known until now, in s: three times as far away."""
    return now_s + max(2.0 * (now_s - since_s), _NEAREST_S)
