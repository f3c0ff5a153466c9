"""Instants at which enough devices are available, or any comes or leaves, in recordings that may be repeated."""

import numpy as np

from edgesim.base.arrays import Floats
from edgesim.traces.intervals import Intervals
from edgesim.traces.repeats import instants_s
from edgesim.traces.stays import Stays

LENGTHS_LIMIT = 50
"""Lengths of the longest recording that are searched ahead; what has not come by then counts as never."""

_WINDOWS = 8
"""Windows in which each of these lengths is searched where recordings of different length are repeated."""


def next_time_with(stays: Stays, length_s: float, count: int, t_s: float) -> float:
    """First instant >= ``t_s`` with at least ``count`` devices available; inf if there is none.

    All recordings are repeated at one length, inf where they are not. Also inf where they are and the instant does not
    come in `LENGTHS_LIMIT` of them.
    """
    cycle, phase_s = _cycle_and_phase(t_s, length_s)
    if stays.count_at(phase_s) >= count:
        return t_s
    last_cycle = cycle + LENGTHS_LIMIT
    while cycle <= last_cycle:
        later_s = stays.first_with(count, phase_s)
        if np.isinf(later_s) and np.isfinite(length_s):
            later_s, cycle = stays.first_with(count, -1.0), cycle + 1
        if not cycle or np.isinf(later_s):
            return later_s
        when_s = float(instants_s(cycle, length_s, later_s))
        cycle, phase_s = _cycle_and_phase(when_s, length_s)
        # A stay shorter than a step of the clock may hold at no instant that the clock can show.
        if stays.count_at(phase_s) >= count:
            return when_s
    return np.inf


def next_change(stays: Stays, length_s: float, t_s: float) -> float:
    """First instant > ``t_s`` at which anybody comes or leaves; inf if there is none.

    All recordings are repeated at one length, and then the seam counts too; inf where they are not.
    """
    cycle, phase_s = _cycle_and_phase(t_s, length_s)
    first_s = min(stays.next_edge_s(phase_s), length_s)
    return float(instants_s(cycle, length_s, first_s)) if np.isfinite(length_s) else first_s


def _cycle_and_phase(t_s: float, length_s: float) -> tuple[float, float]:
    # divmod of two infinite numbers is NaN.
    return divmod(t_s, length_s) if np.isfinite(length_s) else (0.0, t_s)


def next_time_apart(apart: Intervals, count: int, t_s: float) -> float:
    """First instant >= ``t_s`` with ``count`` devices, in recordings repeated at different lengths; inf if none.

    It is searched window by window, as such recordings need not repeat together.
    """
    if len(np.unique(apart.device)) < count:
        return np.inf
    longest_s = float(apart.length_s.max())
    for window in range(_WINDOWS * LENGTHS_LIMIT):
        begin_s, until_s = (t_s + step * longest_s / _WINDOWS for step in (window, window + 1))
        starts_s, ends_s = _unrolled(apart, begin_s, until_s)
        candidates_s = np.append(begin_s, starts_s[(starts_s > begin_s) & (starts_s <= until_s)])
        begun = np.searchsorted(starts_s, candidates_s, "right")
        enough = np.flatnonzero(begun - np.searchsorted(ends_s, candidates_s, "right") >= count)
        if len(enough):
            return float(candidates_s[enough[0]])
    return np.inf


def _unrolled(apart: Intervals, begin_s: float, until_s: float) -> tuple[Floats, Floats]:
    """Sorted starts and ends of the repeated periods that overlap a window, and of some around it."""
    lengths_s = apart.length_s[apart.device]
    starts_s, ends_s = [np.empty(0)], [np.empty(0)]
    # Rounding may add repetitions that do not overlap the window, which changes no count, but must leave none out.
    slack_s = 8 * np.spacing(until_s)
    cycle = np.floor((begin_s - slack_s - apart.end_s) / lengths_s) + 1
    # A short recording comes round several times within a window.
    while np.any(inside := cycle * lengths_s + apart.start_s <= until_s + slack_s):
        laps, length_s = cycle[inside], lengths_s[inside]
        starts_s.append(instants_s(laps, length_s, apart.start_s[inside]))
        ends_s.append(instants_s(laps, length_s, apart.end_s[inside]))
        cycle = cycle + 1
    return np.sort(np.concatenate(starts_s)), np.sort(np.concatenate(ends_s))
