"""Availability as an exact table of half-open intervals, asked at any instant and in any order."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.device_keys import DeviceKeys
from edgesim.traces.availability import Availability
from edgesim.traces.coincidence import LENGTHS_LIMIT, next_change, next_time_apart, next_time_with
from edgesim.traces.intervals import Intervals
from edgesim.traces.repeats import instants_s
from edgesim.traces.slots import Slots
from edgesim.traces.stays import Stays, stays_of

AfterEnd = Literal["raise", "wrap", "absent"]
"""Rule for time after a recording's end: a run must end before it, it is repeated, or nobody is there."""

_MOST_FLEETS = 64
"""Lengths of repeated recordings up to which devices of one length are looked at together."""


class IntervalTable(Availability):
    """Exact half-open intervals per device; a device without intervals is never available.

    With ``after_end = "wrap"`` each device's recording is repeated at its own length; else nobody is available after
    it, and with ``"raise"`` a run must end before.
    """

    slots: Slots | None = None
    """The slots of a programme of which this is the table; None for one that has none."""

    def __init__(self, intervals: Intervals, after_end: AfterEnd, stays: Stays | None = None) -> None:
        """Make the table of ``intervals``, or of ``stays`` of one length, made on demand, where these have no rows."""
        self.name, self.after_end = intervals.name, after_end
        self.unobserved_share, self.unobserved_as = intervals.unobserved_share, intervals.unobserved_as
        self.keys = None if intervals.keys is None else DeviceKeys(intervals.keys, intervals.name)
        self.device_count = intervals.device_count
        self.length_s = float(intervals.length_s.min())
        """Length of the shortest recording, in s."""
        self.known_until_s = self.length_s if after_end == "raise" else np.inf
        lengths_s = np.unique(intervals.length_s)
        # One number where all recordings are equally long: dividing by it is the dearest step of a question.
        self._length_s = intervals.length_s if len(lengths_s) > 1 else lengths_s[0]
        self._stays = stays_of(intervals) if stays is None else stays
        self._apart = intervals if after_end == "wrap" and len(lengths_s) > 1 else None
        """Repeated recordings of different lengths, which are not at the same place at any instant."""
        few = self._apart is not None and len(lengths_s) <= _MOST_FLEETS
        self._fleets = [_fleet(intervals, length_s) for length_s in lengths_s.tolist()] if few else []
        """Devices of one length each, where repeated recordings differ in it but not all of them do."""

    @override
    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """Whether each device is inside one of its intervals at ``t_s``, a scalar or [n]; [n]."""
        at_once = np.ndim(t_s) == 0 and len(ids) > self.device_count // 8
        if self._fleets and at_once:
            return self._present_at(float(np.asarray(t_s)))[ids]
        _, phase_s = self._cycle_and_phase(ids, t_s)
        if self._apart is None and at_once:
            return self._stays.present_at(float(phase_s))[ids]
        return self._stays.until_s(ids, phase_s, looked_s=0.0) > phase_s

    def _present_at(self, t_s: float) -> Booleans:
        """Whether each of all devices is available, [devices], where recordings are of a few lengths."""
        present = np.empty(self.device_count, dtype=bool)
        for ids, length_s, stays in self._fleets:
            present[ids] = stays.present_at(t_s % length_s)
        return present

    @override
    def available_until(self, ids: Integers, t_s: ArrayLike, horizon_s: float = np.inf) -> Floats:
        """End of each device's current stretch, [n]; as `Availability` says."""
        cycle, phase_s = self._cycle_and_phase(ids, t_s)
        within_s = self._stays.until_s(ids, phase_s, np.inf if np.any(cycle) else horizon_s)
        here = within_s > phase_s
        cycle, within_s = self._over_the_seam(ids, cycle, within_s, horizon_s, here)
        until_s = np.where(here, self._instant_s(ids, cycle, within_s), t_s)
        return np.where(until_s >= horizon_s, np.inf, until_s)

    @override
    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """First instant >= ``t_s`` (a scalar or [n]) at which each device is available, [n]; inf if there is none."""
        when_s = self._start_of_next(ids, t_s)
        if self.after_end != "wrap":
            return when_s
        # A stay shorter than a step of the clock may hold at no instant that the clock can show.
        missed = np.flatnonzero(np.isfinite(when_s))
        missed = missed[np.spacing(when_s[missed]) > self._stays.shortest_s]
        limit_s = np.asarray(t_s) + LENGTHS_LIMIT * np.broadcast_to(self._lengths_of(ids), len(ids))
        while len(missed := missed[~self.available(ids[missed], when_s[missed])]):
            when_s[missed] = self._start_of_next(ids[missed], when_s[missed])
            when_s = np.where(when_s > limit_s, np.inf, when_s)
            missed = missed[np.isfinite(when_s[missed])]
        return when_s

    def _start_of_next(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """Start of each device's next interval, [n]; ``t_s`` for a device that is available then."""
        cycle, phase_s = self._cycle_and_phase(ids, t_s)
        start_s = self._stays.next_s(ids, phase_s)
        here, none_left = start_s == phase_s, np.isinf(start_s)
        if self.after_end == "wrap" and none_left.any():
            start_s[none_left] = self._stays.next_s(ids[none_left], 0.0)
            cycle = cycle + none_left
        return np.where(here, t_s, self._instant_s(ids, cycle, start_s))

    @override
    def next_time_with(self, count: int, t_s: float) -> float:
        """First instant >= ``t_s`` with ``count`` devices or more: ``t_s`` or the start of an interval; inf if none."""
        if count > self.device_count:
            return np.inf
        if self._apart is None:
            return next_time_with(self._stays, self._cycle_s, count, t_s)
        if np.count_nonzero(self.available(np.arange(self.device_count), t_s)) >= count:
            return t_s
        return next_time_apart(self._apart, count, t_s)

    @override
    def next_change(self, t_s: float) -> float:
        """First instant > ``t_s`` at which a device comes or leaves; inf if none, or if not known.

        It is not known where recordings of very many lengths are repeated.
        """
        if self._apart is None:
            return next_change(self._stays, self._cycle_s, t_s)
        return min((next_change(stays, length_s, t_s) for _, length_s, stays in self._fleets), default=np.inf)

    @property
    def _cycle_s(self) -> float:
        """Length at which all recordings are repeated, in s; inf where they are not."""
        return self.length_s if self.after_end == "wrap" else np.inf

    @property
    @override
    def changes_every(self) -> tuple[str, float] | None:
        return ("a recording that is repeated", self.length_s) if self.after_end == "wrap" else None

    @override
    def facts(self) -> dict[str, Any]:
        """The unobserved share of a recording's time, and what that time counts as."""
        share = self.unobserved_share
        return {"unobserved_share": share} | ({"unobserved_as": self.unobserved_as} if share else {})

    @override
    def ever_has(self, count: int) -> bool:
        """Whether ``count`` devices may be available at one instant; False only where that certainly never happens."""
        if self._apart is not None:
            return count <= self.most_at_once()
        return bool(np.isfinite(self._stays.first_with(count, -1.0)))

    @override
    def most_at_once(self) -> int:
        """Most devices available at one instant; a bound on it where recordings of different length are repeated."""
        return self._stays.most_at_once() if self._apart is None else len(np.unique(self._apart.device))

    def _cycle_and_phase(self, ids: Integers, t_s: ArrayLike) -> tuple[Floats, Floats]:
        """Whole repetitions before an instant, and the time since the last of them."""
        instants_s = np.asarray(t_s, dtype=np.float64)
        if self.after_end != "wrap":
            return np.zeros(()), instants_s
        lengths_s = self._lengths_of(ids)
        if np.ndim(lengths_s) == 0 and np.isinf(lengths_s):
            return np.zeros(()), instants_s
        cycle, phase_s = np.divmod(instants_s, lengths_s)
        return np.asarray(cycle), np.asarray(phase_s)

    def _lengths_of(self, ids: Integers) -> Floats:
        return self._length_s if np.ndim(self._length_s) == 0 else self._length_s[ids]

    def _over_the_seam(
        self, ids: Integers, cycle: Floats, within_s: Floats, horizon_s: float, here: Booleans
    ) -> tuple[Floats, Floats]:
        """Extend stretches that end with the recording into its repetition."""
        lengths_s = self._lengths_of(ids)
        at_seam = here & (within_s == lengths_s) & np.isfinite(within_s)
        if self.after_end != "wrap" or not at_seam.any():
            return cycle, within_s
        next_end_s = np.zeros(len(ids))
        next_end_s[at_seam] = self._stays.until_s(ids[at_seam], 0.0)
        continues = next_end_s > 0
        # Who is there from the first to the last second never leaves.
        next_end_s[next_end_s == lengths_s] = np.inf
        return cycle + continues, np.where(continues, next_end_s, within_s)

    def _instant_s(self, ids: Integers, cycle: Floats, within_s: Floats) -> Floats:
        """The instant ``within_s`` after the start of a repetition; the float at or just behind it."""
        if self.after_end != "wrap":
            return within_s
        lengths_s = self._lengths_of(ids)
        finite = np.isfinite(within_s)
        if not np.any(cycle) or not np.any(finite):
            return within_s
        return np.where(finite, instants_s(cycle, lengths_s, np.where(finite, within_s, 0.0)), np.inf)


def _fleet(intervals: Intervals, length_s: float) -> tuple[Integers, float, Stays]:
    """Devices with recordings of one length, the length, and the stays of these devices, which repeat in step."""
    member = intervals.length_s == length_s
    rows = member[intervals.device]
    number = np.cumsum(member) - 1
    columns = (number[intervals.device[rows]], intervals.start_s[rows], intervals.end_s[rows])
    return np.flatnonzero(member), length_s, stays_of(Intervals(*columns, intervals.length_s[member], intervals.name))
