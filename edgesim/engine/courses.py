"""Courses of the uploads of devices that move: received powers along their ways, as far as they are looked at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise, starmap

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.engine.moving_places import MovingPlaces
from edgesim.engine.uplink import Upload
from edgesim.engine.work import Task
from edgesim.engine.world import World
from edgesim.radio.course import Course
from edgesim.radio.fading import power_factor
from edgesim.radio.link import ShannonLink
from edgesim.radio.pieces import without_repeats

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
        columns = [(at.device, at.number, at.handovers, at.weight_hz, at.since_s) for at in uploads]
        ids, numbers, handovers, weight_hz, since_s = np.array(columns).T
        stations, until_each_s = np.full(len(ids), station), np.full(len(ids), until_s)
        return self._of(
            ids.astype(np.int64), numbers.astype(np.int64), stations, weight_hz, since_s, until_each_s, handovers
        )

    def of_begun(self, upload: Upload, station: int, now_s: float) -> Course:
        """The course of an upload that begins: that of its grant, or one that is worked out now."""
        course = None if upload.handovers else self.foreseen.get((upload.device, upload.number))
        if course is None or upload.since_s >= course.until_s:
            # Uploads of a resumed run may have begun long ago.
            until_s = _horizon_s(self.moving.link, upload, upload.deadline_s + 2.0 * upload.tolerance_s)
            (course,) = self.of([upload], station, max(until_s, now_s + (now_s - upload.since_s)))
        return course

    def _of(
        self,
        ids: Integers,
        numbers: Integers,
        station: Integers,
        weight_hz: Floats,
        since_s: Floats,
        until_s: Floats,
        handovers: Floats | int = 0,
    ) -> list[Course]:
        world = self.world
        along = self.moving.gains_along(ids, numbers, station, since_s, until_s)
        factor = power_factor(world.fading, world.streams, ids, numbers, handovers)
        rx_power_w = world.rx_power_w(ids[along.place], along.gain) * factor[along.place]
        kept, first, last = without_repeats(along.place, rx_power_w)
        rx_power_w = rx_power_w[kept]
        rates_bps = _rates_bps(self.moving.link, weight_hz[along.place[kept]], rx_power_w)
        begins_s = along.begin_s[kept]
        ends_s = np.append(begins_s[1:], 0.0)
        ends_s[first[1:] - 1] = along.end_s[last]
        with np.errstate(invalid="ignore"):
            piece_bits = rates_bps * (ends_s - begins_s)
        begins, rates, bits = begins_s.tolist(), rates_bps.tolist(), piece_bits.tolist()
        rows = zip(starmap(slice, pairwise(first.tolist())), along.end_s[last].tolist(), until_s.tolist(), strict=True)
        return [
            Course([*begins[at], end_s], rx_power_w[at], rates[at], bits[at], known_s) for at, end_s, known_s in rows
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
