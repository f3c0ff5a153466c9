"""All devices of an interval table at once: which are available at an instant, and when ``count`` of them are."""

import numpy as np
from numpy.typing import ArrayLike

from edgesim.arrays import Booleans, Floats, Integers
from edgesim.traces.intervals import Intervals
from edgesim.traces.repeats import instants_s

_AT_ONCE = 1 << 12
LENGTHS_LIMIT = 50
"""How far ahead is searched, in lengths of the longest recording; what does not occur by then counts as never."""

_WINDOWS = 8
"""Windows into which each of these lengths is split in the search over repeated recordings of different lengths."""


class Coincidence:
    """The starts and ends of all intervals in order of time, for questions about several devices at once."""

    def __init__(self, intervals: Intervals, wraps: bool) -> None:
        lengths_s = np.unique(intervals.length_s)
        self._device_count = intervals.device_count
        self._length_s = float(lengths_s[-1]) if wraps else np.inf
        self._apart = intervals if wraps and len(lengths_s) > 1 else None
        self.in_step = self._apart is None
        """Whether all devices are always at the same position in their recordings (equal lengths, or no repetition)."""
        if self.in_step:
            device = intervals.device.astype(np.int32)
            by_start, by_end = np.argsort(intervals.start_s), np.argsort(intervals.end_s)
            self._starts_s, self._ends_s = intervals.start_s[by_start], intervals.end_s[by_end]
            self._starting, self._ending = device[by_start], device[by_end]
            self._stride = max(self._device_count, _AT_ONCE)
            self._take_snapshots()

    def present_at(self, t_s: float) -> Booleans:
        """Which of all devices are available at an instant within the recording, [devices].

        Counts starts and ends since the last snapshot before the instant, which is cheaper than a search per device.
        """
        begun = int(np.searchsorted(self._starts_s, t_s, "right"))
        ended = int(np.searchsorted(self._ends_s, t_s, "right"))
        return self._counts(begun // self._stride, begun, ended) > 0

    def _take_snapshots(self) -> None:
        """After every ``_stride`` starts: how many ends there were until then, and which devices are available."""
        self._snapshots = [(0, np.zeros(self._device_count, dtype=np.int8))]
        for begun in range(self._stride, len(self._starts_s) + 1, self._stride):
            ended = int(np.searchsorted(self._ends_s, self._starts_s[begun - 1], "right"))
            self._snapshots.append((ended, self._counts(len(self._snapshots) - 1, begun, ended).astype(np.int8)))

    def _counts(self, number: int, begun: int, ended: int) -> Integers:
        """Open intervals of each device after the first ``begun`` starts and the first ``ended`` ends, [devices].

        Counted from snapshot ``number`` on.
        """
        ended_before, counts = self._snapshots[number]
        starting = self._starting[number * self._stride : begun]
        ending = self._ending[ended_before:ended]
        change = np.bincount(starting, minlength=self._device_count)
        change -= np.bincount(ending, minlength=self._device_count)
        return np.asarray(counts + change)

    def next_time_with(self, count: int, t_s: float) -> float:
        """First instant >= ``t_s`` with at least ``count`` devices available; inf if there is none.

        For repeated recordings inf also if there is none within `LENGTHS_LIMIT` lengths of the longest.
        """
        if count > self._device_count:
            return np.inf
        if self._apart is not None:
            return self._search(self._apart, count, t_s)
        cycle, phase_s = self._cycle_and_phase(t_s)
        if self.count_at(phase_s) >= count:
            return t_s
        last_cycle = cycle + LENGTHS_LIMIT
        while cycle <= last_cycle:
            later_s = self._first_start_with(count, int(np.searchsorted(self._starts_s, phase_s, "right")))
            if np.isinf(later_s) and np.isfinite(self._length_s):
                later_s, cycle = self._first_start_with(count, 0), cycle + 1
            if not cycle or np.isinf(later_s):
                return later_s
            when_s = float(instants_s(cycle, self._length_s, later_s))
            cycle, phase_s = self._cycle_and_phase(when_s)
            # A stay shorter than the spacing of floating-point numbers may contain no instant of the clock.
            if self.count_at(phase_s) >= count:
                return when_s
        return np.inf

    def next_change(self, t_s: float) -> float:
        """First instant > ``t_s`` at which any device's availability changes; inf if there is none.

        Only for recordings `in_step`. For repeated ones the instant at which they begin again counts as a change.
        """
        cycle, phase_s = self._cycle_and_phase(t_s)
        edges_s = [self._length_s]
        for sorted_s in (self._starts_s, self._ends_s):
            edges_s += sorted_s[np.searchsorted(sorted_s, phase_s, "right") :][:1].tolist()
        first_s = min(edges_s)
        return float(instants_s(cycle, self._length_s, first_s)) if np.isfinite(self._length_s) else first_s

    def _cycle_and_phase(self, t_s: float) -> tuple[float, float]:
        return divmod(t_s, self._length_s) if np.isfinite(self._length_s) else (0.0, t_s)

    def count_at(self, t_s: ArrayLike) -> Integers:
        """Number of devices available at instants within the recording, of the shape of ``t_s``."""
        begun = np.searchsorted(self._starts_s, t_s, "right")
        return np.asarray(begun - np.searchsorted(self._ends_s, t_s, "right"))

    def ever_has(self, count: int) -> bool:
        """Whether ``count`` devices may be available at one instant; False only if they certainly never are."""
        if self._apart is not None:
            return count <= self.most_at_once()
        return bool(np.isfinite(self._first_start_with(count, 0)))

    def most_at_once(self) -> int:
        """Most devices available at one instant; an upper bound for repeated recordings of different lengths."""
        if self._apart is not None:
            return len(np.unique(self._apart.device))
        ended = np.searchsorted(self._ends_s, self._starts_s, "right")
        return int((np.arange(1, len(ended) + 1) - ended).max(initial=0))

    def _first_start_with(self, count: int, first: int) -> float:
        """Time of the first start, from number ``first`` on, at which ``count`` devices are available; inf if none."""
        size = _AT_ONCE
        while first < len(self._starts_s):
            starts_s = self._starts_s[first : first + size]
            enough = np.flatnonzero(self.count_at(starts_s) >= count)
            if len(enough):
                return float(starts_s[enough[0]])
            first, size = first + size, 2 * size
        return np.inf

    def _search(self, apart: Intervals, count: int, t_s: float) -> float:
        """As `next_time_with`, window by window, for recordings of different lengths, which have no common period."""
        if len(np.unique(apart.device)) < count:
            return np.inf
        for window in range(_WINDOWS * LENGTHS_LIMIT):
            begin_s, until_s = (t_s + step * self._length_s / _WINDOWS for step in (window, window + 1))
            starts_s, ends_s = _unrolled(apart, begin_s, until_s)
            candidates_s = np.append(begin_s, starts_s[(starts_s > begin_s) & (starts_s <= until_s)])
            begun = np.searchsorted(starts_s, candidates_s, "right")
            enough = np.flatnonzero(begun - np.searchsorted(ends_s, candidates_s, "right") >= count)
            if len(enough):
                return float(candidates_s[enough[0]])
        return np.inf


def _unrolled(apart: Intervals, begin_s: float, until_s: float) -> tuple[Floats, Floats]:
    """Sorted starts and ends of the repeated intervals that overlap a window, and of some next to it."""
    lengths_s = apart.length_s[apart.device]
    starts_s, ends_s = [np.empty(0)], [np.empty(0)]
    # The slack may add intervals next to the window, which changes no count; without it rounding could leave one out.
    slack_s = 8 * np.spacing(until_s)
    cycle = np.floor((begin_s - slack_s - apart.end_s) / lengths_s) + 1
    # A short recording repeats several times within a window.
    while np.any(inside := cycle * lengths_s + apart.start_s <= until_s + slack_s):
        laps, length_s = cycle[inside], lengths_s[inside]
        starts_s.append(instants_s(laps, length_s, apart.start_s[inside]))
        ends_s.append(instants_s(laps, length_s, apart.end_s[inside]))
        cycle = cycle + 1
    return np.sort(np.concatenate(starts_s)), np.sort(np.concatenate(ends_s))
