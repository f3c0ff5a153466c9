"""Who is available when: three models behind one protocol, whose answers depend on no earlier question."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgesim.config import AvailabilityConfig
from edgesim.content import find
from edgesim.errors import EdgesimError
from edgesim.streams import Streams
from edgesim.traces.intervals import Intervals, read_intervals

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

SLOT_LIMIT = 100_000
"""Slots that the Bernoulli model looks ahead before it gives up."""

_EDGE_SLOTS = 1e-6
"""A clock this close before a slot's edge is taken to be at the edge."""


class Availability(Protocol):
    """A model of presence; device ids are [n], instants are seconds on the run's clock."""

    def available(self, ids: Integers, t_s: float) -> Booleans:
        """Whether each device is available at an instant, [n]."""

    def available_until(self, ids: Integers, t_s: float, horizon_s: float) -> Floats:
        """Instant at which each device's current available stretch ends, [n].

        ``inf`` where it lasts to the instant ``horizon_s`` or longer, ``t_s`` itself where not available.
        """

    def next_time_with(self, count: int, t_s: float) -> float:
        """First instant >= ``t_s`` with at least ``count`` devices available; inf if there is none."""


@dataclass(frozen=True)
class Always:
    """Every device, all the time."""

    device_count: int

    def available(self, ids: Integers, t_s: float) -> Booleans:
        """True everywhere, [n]."""
        return np.ones(len(ids), dtype=bool)

    def available_until(self, ids: Integers, t_s: float, horizon_s: float) -> Floats:
        """``inf`` everywhere, [n]."""
        return np.full(len(ids), np.inf)

    def next_time_with(self, count: int, t_s: float) -> float:
        """``t_s``; inf if there are fewer than ``count`` devices at all."""
        return t_s if count <= self.device_count else np.inf


@dataclass(frozen=True)
class Bernoulli:
    """In each slot each device is there with the same probability, independently; stream ``availability``."""

    device_count: int
    probability: float
    slot_s: float
    streams: Streams

    def available(self, ids: Integers, t_s: float) -> Booleans:
        """Whether each device is available in the slot of the instant, [n]."""
        return self._in_slot(ids, self._slot(t_s))

    def available_until(self, ids: Integers, t_s: float, horizon_s: float) -> Floats:
        """End of each device's run of available slots, [n]; as `Availability` says, for a finite horizon."""
        until_s = np.full(len(ids), np.inf)
        slot = self._slot(t_s)
        here = self._in_slot(ids, slot)
        until_s[~here] = t_s
        staying = np.flatnonzero(here)
        last = self._slot(horizon_s - 2 * _EDGE_SLOTS * self.slot_s)
        while len(staying) and slot < last:
            slot += 1
            here = self._in_slot(ids[staying], slot)
            until_s[staying[~here]] = slot * self.slot_s
            staying = staying[here]
        return until_s

    def next_time_with(self, count: int, t_s: float) -> float:
        """As `Availability` says, slot by slot; raises `EdgesimError` after `SLOT_LIMIT` slots."""
        if count > self.device_count:
            return np.inf
        ids = np.arange(self.device_count)
        first = self._slot(t_s)
        for slot in range(first, first + SLOT_LIMIT):
            if np.count_nonzero(self._in_slot(ids, slot)) >= count:
                return t_s if slot == first else slot * self.slot_s
        raise EdgesimError(
            f"availability: in {SLOT_LIMIT} slots from {t_s:g} s on, never {count} of {self.device_count} "
            f"devices at once; raise availability.probability ({self.probability:g}) "
            "or lower round.min_candidates"
        )

    def _slot(self, t_s: float) -> int:
        return int(np.floor(t_s / self.slot_s + _EDGE_SLOTS))

    def _in_slot(self, ids: Integers, slot: int) -> Booleans:
        return self.streams.uniform("availability", ids, slot) < self.probability


class IntervalTable:
    """Exact half-open intervals per device; a device without intervals is never available."""

    def __init__(self, intervals: Intervals, device_count: int) -> None:
        # A last row that holds at no instant, for looks behind the last row and, by -1, before the first.
        self._start_s = np.append(intervals.start_s, np.inf)
        self._end_s = np.append(intervals.end_s, -np.inf)
        self._first_row = np.searchsorted(intervals.device, np.arange(device_count + 1))
        self._starts_s, self._ends_s = np.sort(intervals.start_s), np.sort(intervals.end_s)
        self._change_s = np.unique(intervals.start_s)
        self._present = self._count_present(self._change_s)

    def available(self, ids: Integers, t_s: float) -> Booleans:
        """Whether each device is inside one of its intervals, [n]."""
        return self._end_of_stretch_s(ids, t_s) > t_s

    def available_until(self, ids: Integers, t_s: float, horizon_s: float) -> Floats:
        """End of each device's current interval, [n]; as `Availability` says."""
        until_s = self._end_of_stretch_s(ids, t_s)
        return np.where(until_s >= horizon_s, np.inf, until_s)

    def next_time_with(self, count: int, t_s: float) -> float:
        """As `Availability` says: ``t_s``, or else the start of an interval."""
        if self._count_present(t_s) >= count:
            return t_s
        later = np.searchsorted(self._change_s, t_s, "right")
        enough = np.flatnonzero(self._present[later:] >= count)
        return float(self._change_s[later + enough[0]]) if len(enough) else np.inf

    def _count_present(self, t_s: ArrayLike) -> Integers:
        """Devices available at instants, of their shape."""
        begun = np.searchsorted(self._starts_s, t_s, "right")
        return np.asarray(begun - np.searchsorted(self._ends_s, t_s, "right"))

    def _end_of_stretch_s(self, ids: Integers, t_s: float) -> Floats:
        """End of the interval around ``t_s``, [n]; ``t_s`` where there is none."""
        first, low, high = self._first_row[ids], self._first_row[ids], self._first_row[ids + 1]
        # One bisection in the rows of every device at once: `low` ends behind the last start <= t_s.
        while (searching := low < high).any():
            middle = (low + high) // 2
            started = self._start_s[middle] <= t_s
            low, high = (
                np.where(searching & started, middle + 1, low),
                np.where(searching & ~started, middle, high),
            )
        end_s = self._end_s[low - 1]
        return np.where((low > first) & (end_s > t_s), end_s, t_s)


def make_availability(config: AvailabilityConfig, device_count: int, streams: Streams) -> Availability:
    """The model that the config asks for; raises `EdgesimError` for a bad file or a slot length left open.

    ``availability.file`` is a path or the name of a file under ``traces/``.
    """
    if config.model == "always":
        return Always(device_count)
    if config.file is not None:
        return IntervalTable(read_intervals(find("traces", config.file, ".csv"), device_count), device_count)
    if config.slot_s is None:
        raise EdgesimError("availability.slot_s: expected the length of a slot in s; resolve the config or give one")
    return Bernoulli(device_count, config.probability, config.slot_s, streams)
