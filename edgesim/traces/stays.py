"""Stays of all devices in one pass of a recording, in windows of time that are made when first needed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.traces.intervals import Intervals

_AT_ONCE = 1 << 14

_ROWS_OF_DEVICE, _LEAST_ROWS = 1, 1 << 12
"""Periods that begin in a window: few for each device, since a look at an instant goes over all, but not few in all."""


class Window:
    """The periods of all devices between two instants, cut at both; it answers for its own instants alone.

    Its times may be of single precision. NumPy rounds a float that is compared with such an array to single precision,
    but not an np.float64.
    """

    def __init__(self, periods: Intervals, end_s: float) -> None:
        self.end_s = np.float64(end_s)
        self.shortest_s = float(np.min(periods.end_s - periods.start_s, initial=np.inf))
        self._device_count, self._device = periods.device_count, periods.device.astype(np.int32)
        # A last row that holds at no instant, for looks behind the last row and, by -1, before the first.
        self._start_s, self._end_s = _with_last(periods.start_s, np.inf), _with_last(periods.end_s, -np.inf)
        rows = np.bincount(periods.device, minlength=self._device_count)
        self._first_row = np.append(0, np.cumsum(rows)).astype(np.int32)
        self._strides = [1 << bit for bit in reversed(range(int(rows.max(initial=0)).bit_length()))]

    def until_s(self, ids: Integers, t_s: Floats) -> Floats:
        """End of each device's period, [n]; ``t_s``, [n], where it is not available."""
        row = self._last_begun(ids, t_s)
        here = (row >= self._first_row[ids]) & (self._end_s[row] > t_s)
        return np.where(here, self._end_s[row], t_s)

    def next_s(self, ids: Integers, t_s: Floats) -> Floats:
        """``t_s``, [n], where a device is available, else where its next period begins or the window ends, [n]."""
        row = self._last_begun(ids, t_s)
        here = (row >= self._first_row[ids]) & (self._end_s[row] > t_s)
        none_left = row + 1 >= self._first_row[ids + 1]
        start_s = np.where(none_left, self.end_s, self._start_s[row + 1])
        return np.where(here, t_s, start_s)

    def _last_begun(self, ids: Integers, t_s: Floats) -> Integers:
        """Row of each device's last period that has begun, [n]; the row before its first one if none has."""
        row = np.empty(len(ids), dtype=np.int64)
        # In pieces that stay in a processor's cache.
        for begin in range(0, len(ids), _AT_ONCE):
            piece = slice(begin, begin + _AT_ONCE)
            some, until_s = ids[piece], t_s[piece]
            at, behind = self._first_row[some] - 1, self._first_row[some + 1]
            for stride in self._strides:
                ahead = np.minimum(at + stride, behind)
                # Beyond a device's rows lies the next device's first one, or the row that never begins.
                at = np.where((ahead < behind) & (self._start_s[ahead] <= until_s), ahead, at)
            row[piece] = at
        return row

    def present_at(self, t_s: float) -> Booleans:
        """Whether each of all devices is available, [devices]."""
        present = np.zeros(self._device_count, dtype=bool)
        present[self._device[np.flatnonzero(self._holds(t_s))]] = True
        return present

    def count_at(self, t_s: float) -> int:
        """Number of devices available."""
        return int(np.count_nonzero(self._holds(t_s)))

    def _holds(self, t_s: float) -> Booleans:
        at_s = np.float64(t_s)
        return np.asarray((self._start_s[:-1] <= at_s) & (at_s < self._end_s[:-1]))

    @cached_property
    def counts(self) -> tuple[Floats, Integers]:
        """Starts in order of time, and the devices available from each on until somebody leaves, [rows] each."""
        starts_s = np.sort(self._start_s[:-1])
        ended = np.searchsorted(np.sort(self._end_s[:-1]), starts_s, "right")
        return starts_s.astype(np.float64), np.arange(1, len(starts_s) + 1) - ended

    def next_edge_s(self, t_s: float) -> float:
        """First start or end > ``t_s``; the window's end if there is none."""
        ahead_s = (edges_s[np.flatnonzero(edges_s > np.float64(t_s))] for edges_s in (self._start_s, self._end_s))
        return min(float(self.end_s), *(float(np.min(edges_s, initial=np.inf)) for edges_s in ahead_s))


def _with_last(times_s: Floats, last_s: float) -> NDArray[np.floating]:
    """Times, [n], and a last one, [n + 1]; in single precision where that loses nothing, as for whole seconds."""
    row_s = np.empty(len(times_s) + 1, dtype=np.float32)
    row_s[:-1], row_s[-1] = times_s, last_s
    return row_s if np.array_equal(row_s[:-1], times_s) else np.append(times_s, last_s)


class Stays:
    """Stays of all devices in one pass of a recording, from 0 on; nobody is available behind the end."""

    def __init__(self, device_count: int, edges_s: Floats, windows: Iterator[Intervals]) -> None:
        """``edges_s``, [windows + 1], rises from 0 to the end; the windows' periods are cut at the edges."""
        self.device_count, self._edges_s, self._later = device_count, edges_s, windows
        self._windows: list[Window] = []

    @property
    def shortest_s(self) -> float:
        """Length of the shortest period, as cut at the windows' edges, in the windows made so far."""
        return min((window.shortest_s for window in self._windows), default=np.inf)

    def until_s(self, ids: Integers, t_s: ArrayLike, looked_s: float = np.inf) -> Floats:
        """End of each device's stay, [n]; ``t_s``, a scalar or [n], where it is not available.

        For a stay that lasts beyond ``looked_s``, any instant of it behind ``looked_s`` will do.
        """
        return self._followed(Window.until_s, ids, t_s, looked_s)

    def next_s(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """``t_s``, a scalar or [n], where a device is available, else the start of its next stay, [n]; inf if none."""
        when_s = self._followed(Window.next_s, ids, t_s, np.inf)
        return np.where(when_s >= self._edges_s[-1], np.inf, when_s)

    def _followed(
        self, ask: Callable[[Window, Integers, Floats], Floats], ids: Integers, t_s: ArrayLike, looked_s: float
    ) -> Floats:
        """Answers of ``ask``, [n], window by window: an answer at a window's end is taken from the next window."""
        answer_s = np.array(np.broadcast_to(np.asarray(t_s, dtype=np.float64), len(ids)))
        first, looked_s = self._number(answer_s.min(initial=np.inf)), max(looked_s, answer_s.max(initial=0.0))
        open_ = np.arange(len(ids))
        for number in range(first, len(self._edges_s) - 1):
            open_ = open_[answer_s[open_] >= self._edges_s[number]]
            if self._edges_s[number] > looked_s or not len(open_):
                break
            asked = open_[answer_s[open_] < self._edges_s[number + 1]]
            if len(asked):
                answer_s[asked] = ask(self._window(number), ids[asked], answer_s[asked])
        return answer_s

    def present_at(self, t_s: float) -> Booleans:
        """Whether each of all devices is available, [devices]."""
        if t_s >= self._edges_s[-1]:
            return np.zeros(self.device_count, dtype=bool)
        return self._window(self._number(t_s)).present_at(t_s)

    def count_at(self, t_s: float) -> int:
        """Number of devices available."""
        return 0 if t_s >= self._edges_s[-1] else self._window(self._number(t_s)).count_at(t_s)

    def first_with(self, count: int, after_s: float) -> float:
        """First start > ``after_s`` from which on ``count`` devices are available, inf if there is none.

        Fewer must be available at ``after_s``, unless it lies before 0.
        """
        for number in range(self._number(after_s), len(self._edges_s) - 1):
            starts_s, counts = self._window(number).counts
            enough = np.flatnonzero((starts_s > after_s) & (counts >= count))
            if len(enough):
                return float(starts_s[enough[0]])
        return np.inf

    def next_edge_s(self, t_s: float) -> float:
        """First instant > ``t_s`` at which anybody comes or leaves; inf if there is none."""
        for number in range(self._number(t_s), len(self._edges_s) - 1):
            end_s = float(self._edges_s[number + 1])
            edge_s = self._window(number).next_edge_s(t_s)
            if edge_s < end_s:
                return edge_s
            # Only those who come or leave at the end itself count, not those whose stays are cut there.
            staying = self._window(number).present_at(np.nextafter(end_s, -np.inf))
            if not np.array_equal(staying, self.present_at(end_s)):
                return end_s
            t_s = end_s
        return np.inf

    def most_at_once(self) -> int:
        """Most devices available at one instant."""
        numbers = range(len(self._edges_s) - 1)
        return max(int(self._window(number).counts[1].max(initial=0)) for number in numbers)

    def _number(self, t_s: float) -> int:
        return max(int(np.searchsorted(self._edges_s, t_s, "right")) - 1, 0)

    def _window(self, number: int) -> Window:
        while len(self._windows) <= number:
            self._windows.append(Window(next(self._later), float(self._edges_s[len(self._windows) + 1])))
        return self._windows[number]


def windows_of(periods: float, device_count: int) -> int:
    """Number of windows in which to keep so many periods of so many devices."""
    return max(round(periods / max(_ROWS_OF_DEVICE * device_count, _LEAST_ROWS)), 1)


def stays_of(intervals: Intervals) -> Stays:
    """Stays of a recording, in windows of about as many starts each."""
    rows = len(intervals.start_s)
    count = windows_of(rows, intervals.device_count)
    places = np.arange(1, count) * rows // count
    inner_s = np.partition(intervals.start_s, places)[places]
    edges_s = np.unique(np.concatenate([[0.0], inner_s, [intervals.length_s.max()]]))
    return Stays(intervals.device_count, edges_s, _cut(intervals, edges_s))


def _cut(intervals: Intervals, edges_s: Floats) -> Iterator[Intervals]:
    for begin_s, end_s in pairwise(edges_s.tolist()):
        rows = np.flatnonzero((intervals.start_s < end_s) & (intervals.end_s > begin_s))
        start_s, until_s = np.maximum(intervals.start_s[rows], begin_s), np.minimum(intervals.end_s[rows], end_s)
        yield replace(intervals, device=intervals.device[rows], start_s=start_s, end_s=until_s)
