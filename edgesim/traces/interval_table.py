"""Availability as an exact table of half-open intervals, asked at any instant and in any order."""

from copy import copy
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from edgesim.arrays import Booleans, Floats, Integers
from edgesim.errors import EdgesimError
from edgesim.files.device_keys import DeviceKeys
from edgesim.traces.coincidence import LENGTHS_LIMIT, Coincidence
from edgesim.traces.intervals import Intervals, counts_over_time
from edgesim.traces.repeats import instants_s

AfterEnd = Literal["raise", "wrap", "absent"]
"""What follows a recording's end: nothing is known (asking is an error), it begins again, or nobody is there."""

_AT_ONCE = 1 << 14

_MOST_FLEETS = 64
"""Lengths of repeated recordings up to which devices of one length are looked at together."""


class IntervalTable:
    """Exact half-open intervals per device; a device without intervals is never available.

    With ``after_end = "wrap"`` each device's recording is repeated at its own length.
    """

    def __init__(self, intervals: Intervals, after_end: AfterEnd) -> None:
        self.name, self.after_end = intervals.name, after_end
        self.unobserved_share, self.unobserved_as = intervals.unobserved_share, intervals.unobserved_as
        self.keys = None if intervals.keys is None else DeviceKeys(intervals.keys, intervals.name)
        self.device_count = intervals.device_count
        self.known_until_s = np.inf
        """Where a run must have ended, since nothing is known from there on."""
        self.length_s = float(intervals.length_s.min())
        """Where the first of the recordings ends."""
        lengths_s = np.unique(intervals.length_s)
        # One number where all recordings are equally long: dividing by it is the dearest step of a question.
        self._length_s = intervals.length_s if len(lengths_s) > 1 else lengths_s[0]
        # A last row that holds at no instant, for looks behind the last row and, by -1, before the first.
        self._start_s = np.append(intervals.start_s, np.inf)
        self._end_s = np.append(intervals.end_s, -np.inf)
        self._shortest_s = float(np.min(intervals.end_s - intervals.start_s, initial=np.inf))
        self._first_row = np.searchsorted(intervals.device, np.arange(self.device_count + 1))
        most = int(np.diff(self._first_row).max(initial=0))
        self._strides = [1 << bit for bit in reversed(range(most.bit_length()))]
        self._coincidence = Coincidence(intervals, wraps=after_end == "wrap")
        apart = not self._coincidence.in_step and len(lengths_s) <= _MOST_FLEETS
        self._fleets = [_fleet(intervals, length_s) for length_s in lengths_s.tolist()] if apart else []
        """Devices of one length each, where repeated recordings differ in it but not all of them do."""

    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """Whether each device is inside one of its intervals at ``t_s``, a scalar or [n]; [n]."""
        if self._fleets and np.ndim(t_s) == 0 and len(ids) > self.device_count // 8:
            return self._present_at(float(np.asarray(t_s)))[ids]
        _, phase_s = self._cycle_and_phase(ids, t_s)
        if phase_s.ndim == 0 and self._coincidence.in_step and len(ids) > self.device_count // 8:
            return self._coincidence.present_at(float(phase_s))[ids]
        row = self._last_begun(ids, phase_s)
        return (row >= self._first_row[ids]) & (self._end_s[row] > phase_s)

    def _present_at(self, t_s: float) -> Booleans:
        """Which of all devices are available, [devices], where recordings are of a few lengths."""
        present = np.empty(self.device_count, dtype=bool)
        for ids, length_s, coincidence in self._fleets:
            present[ids] = coincidence.present_at(t_s % length_s)
        return present

    def available_until(self, ids: Integers, t_s: ArrayLike, horizon_s: float = np.inf) -> Floats:
        """End of each device's current stretch, [n]; as `Availability` says."""
        cycle, phase_s = self._cycle_and_phase(ids, t_s)
        row = self._last_begun(ids, phase_s)
        here = (row >= self._first_row[ids]) & (self._end_s[row] > phase_s)
        cycle, within_s = self._over_the_seam(ids, cycle, np.where(here, self._end_s[row], phase_s), horizon_s, here)
        until_s = np.where(here, self._instant_s(ids, cycle, within_s), t_s)
        return np.where(until_s >= horizon_s, np.inf, until_s)

    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """First instant >= ``t_s`` (a scalar or [n]) at which each device is available, [n]; inf if there is none."""
        when_s = self._start_of_next(ids, t_s)
        if self.after_end != "wrap":
            return when_s
        # A stay shorter than a step of the clock may hold at no instant that the clock can show.
        missed = np.flatnonzero(np.isfinite(when_s))
        missed = missed[np.spacing(when_s[missed]) > self._shortest_s]
        limit_s = np.asarray(t_s) + LENGTHS_LIMIT * np.broadcast_to(self._lengths_of(ids), len(ids))
        while len(missed := missed[~self.available(ids[missed], when_s[missed])]):
            when_s[missed] = self._start_of_next(ids[missed], when_s[missed])
            when_s = np.where(when_s > limit_s, np.inf, when_s)
            missed = missed[np.isfinite(when_s[missed])]
        return when_s

    def _start_of_next(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """``t_s`` where a device is there, else where its next interval begins, [n]."""
        cycle, phase_s = self._cycle_and_phase(ids, t_s)
        first, behind = self._first_row[ids], self._first_row[ids + 1]
        row = self._last_begun(ids, phase_s)
        here = (row >= first) & (self._end_s[row] > phase_s)
        none_left = row + 1 >= behind
        if self.after_end == "raise":
            self._refuse_beyond(np.any(none_left & ~here), "the next time that a device is available")
        start_s = self._start_s[np.where(none_left, -1, row + 1)]
        if self.after_end == "wrap":
            again = none_left & (behind > first)
            start_s = np.where(again, self._start_s[np.where(again, first, -1)], start_s)
            cycle = cycle + again
        return np.where(here, t_s, self._instant_s(ids, cycle, start_s))

    def next_time_with(self, count: int, t_s: float) -> float:
        """As `Availability` says: ``t_s``, or else the start of an interval."""
        if not self._coincidence.in_step:
            # Looked up first, since the search ahead is dear.
            here = self.available(np.arange(self.device_count), t_s)
            if np.count_nonzero(here) >= count:
                return t_s
        when_s = self._coincidence.next_time_with(count, t_s)
        if self.after_end == "raise" and count <= self.device_count:
            self._refuse_beyond(when_s >= self.length_s, f"the next time that {count} devices are available")
        return when_s

    def next_change(self, t_s: float) -> float:
        """As `Availability` says; not known (inf) where recordings of very many lengths are repeated."""
        if self._coincidence.in_step:
            return self._coincidence.next_change(t_s)
        return min((fleet.next_change(t_s) for _, _, fleet in self._fleets), default=np.inf)

    def counts_over_time(self) -> tuple[Floats, Integers]:
        """Instants at which the number of devices online changes, and that number from there on, [k] each.

        Those of the recording itself, from 0 on, whatever follows its end.
        """
        return counts_over_time(self._start_s[:-1], self._end_s[:-1])

    def ever_has(self, count: int) -> bool:
        """Whether so many devices may be available at one instant; False only where that is known to never be."""
        return self._coincidence.ever_has(count)

    def most_at_once(self) -> int:
        """Most devices available at one instant; a bound on it where recordings of different length are repeated."""
        return self._coincidence.most_at_once()

    def for_run_until(self, stop_at_s: float | None) -> "IntervalTable":
        """This table for a run, of known end or not.

        Raises `EdgesimError` where the end is known, the table is shorter and ``after_end`` refuses. Where it refuses
        and the end is not known, the run has to end before ``known_until_s``: looks ahead of the clock are none of the
        run's business.
        """
        if self.after_end != "raise":
            return self
        self._refuse_beyond(stop_at_s is not None and stop_at_s > self.length_s, f"{stop_at_s or 0:.10g} s (stop_at_s)")
        table = copy(self)
        table.after_end = "absent"
        table.known_until_s = self.length_s if stop_at_s is None else np.inf
        return table

    def refuse_to_go_on(self, what: str = "what follows") -> None:
        """The run comes to ``known_until_s``, or will: raises `EdgesimError`."""
        self._refuse_beyond(True, what)

    def _cycle_and_phase(self, ids: Integers, t_s: ArrayLike) -> tuple[Floats, Floats]:
        """Whole repetitions before an instant, and the time since the last of them."""
        instants_s = np.asarray(t_s, dtype=np.float64)
        if self.after_end == "raise":
            self._refuse_beyond(np.any(instants_s >= self._lengths_of(ids)), f"{np.max(instants_s):g} s")
        if self.after_end != "wrap":
            return np.zeros(()), instants_s
        lengths_s = self._lengths_of(ids)
        if np.ndim(lengths_s) == 0 and np.isinf(lengths_s):
            return np.zeros(()), instants_s
        cycle, phase_s = np.divmod(instants_s, lengths_s)
        return np.asarray(cycle), np.asarray(phase_s)

    def _lengths_of(self, ids: Integers) -> Floats:
        return self._length_s if np.ndim(self._length_s) == 0 else self._length_s[ids]

    def _last_begun(self, ids: Integers, phase_s: Floats) -> Integers:
        """Row of each device's last interval that has begun, [n]; the row before its first one if none has."""
        phases_s = np.broadcast_to(phase_s, len(ids))
        row = np.empty(len(ids), dtype=np.int64)
        # In pieces that stay in a processor's cache.
        for begin in range(0, len(ids), _AT_ONCE):
            piece = slice(begin, begin + _AT_ONCE)
            some, until_s = ids[piece], phases_s[piece]
            at, behind = self._first_row[some] - 1, self._first_row[some + 1]
            for stride in self._strides:
                ahead = np.minimum(at + stride, behind)
                # Beyond a device's rows lies the next device's first one, or the row that never begins.
                at = np.where((ahead < behind) & (self._start_s[ahead] <= until_s), ahead, at)
            row[piece] = at
        return row

    def _over_the_seam(
        self, ids: Integers, cycle: Floats, within_s: Floats, horizon_s: float, here: Booleans
    ) -> tuple[Floats, Floats]:
        """Follow stretches that end with the recording into what comes after it."""
        lengths_s = self._lengths_of(ids)
        at_seam = here & (within_s == lengths_s) & np.isfinite(within_s)
        if self.after_end == "raise":
            self._refuse_beyond(np.any(at_seam & (lengths_s < horizon_s)), f"{horizon_s:g} s")
        if self.after_end != "wrap" or not at_seam.any():
            return cycle, within_s
        first = np.where(at_seam, self._first_row[ids], -1)
        goes_on = at_seam & (self._start_s[first] == 0.0)
        # Who is there from the first to the last second never leaves.
        next_end_s = np.where(self._end_s[first] == lengths_s, np.inf, self._end_s[first])
        return cycle + goes_on, np.where(goes_on, next_end_s, within_s)

    def _instant_s(self, ids: Integers, cycle: Floats, within_s: Floats) -> Floats:
        """The instant ``within_s`` after the start of a repetition; the float at or just behind it."""
        if self.after_end != "wrap":
            return within_s
        lengths_s = self._lengths_of(ids)
        finite = np.isfinite(within_s)
        if not np.any(cycle) or not np.any(finite):
            return within_s
        return np.where(finite, instants_s(cycle, lengths_s, np.where(finite, within_s, 0.0)), np.inf)

    def _refuse_beyond(self, asked: np.bool_ | bool, what: str) -> None:
        if asked:
            raise EdgesimError(
                f"{self.name}: the trace ends at {self.length_s:.10g} s, but {what} is asked for; end the run earlier "
                '(stop_at_s), repeat the trace (availability.after_end = "wrap") or count everyone as gone '
                '(availability.after_end = "absent")'
            )


def _fleet(intervals: Intervals, length_s: float) -> tuple[Integers, float, Coincidence]:
    """The devices whose recordings have one length, that length, and when they are there; they repeat in step."""
    member = intervals.length_s == length_s
    rows = member[intervals.device]
    number = np.cumsum(member) - 1
    columns = (number[intervals.device[rows]], intervals.start_s[rows], intervals.end_s[rows])
    fleet = Intervals(*columns, intervals.length_s[member], intervals.name)
    return np.flatnonzero(member), length_s, Coincidence(fleet, wraps=True)
