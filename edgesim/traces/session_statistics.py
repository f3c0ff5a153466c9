"""Statistics of an availability trace: sessions, durations, gaps, hours of the day."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.traces.intervals import Intervals, counts_over_time

HOUR_S = 3600.0


@dataclass(frozen=True)
class Anatomy:
    """Statistics of FedDance's fig. 3 for any trace, and the availability over the hours of the day."""

    intervals: Intervals
    length_s: float
    """Length of the longest recording."""
    unobserved_share: float
    online_share: Floats
    """Share of each device's recording in which it is available, [devices]."""
    sessions: Integers
    """Number of available periods of each device, [devices]."""
    duration_s: Floats
    """Duration of every period, [n]."""
    gap_s: Floats
    """Gaps between consecutive periods of one device, [m]."""
    mean_gap_s: Floats
    """Mean gap of each device that has gaps."""
    longest_gap_s: Floats
    """Longest gap of each device, [devices]; 0 for a device without gaps."""
    online_by_hour_s: Floats
    """Device-seconds online in each hour of the day, [24], hour 0 at the trace's zero."""
    recorded_by_hour_s: Floats
    """Device-seconds recorded in each hour of the day, [24]."""

    @cached_property
    def counts_over_time(self) -> tuple[Floats, Integers]:
        """Instants at which the number of devices online changes, and that number from there on, [k] each."""
        return counts_over_time(self.intervals.start_s, self.intervals.end_s)

    def recorded_until_s(self, t_s: Floats) -> Floats:
        """Device-seconds recorded up to each instant, [k]."""
        lengths_s, devices = np.unique(self.intervals.length_s, return_counts=True)
        return np.asarray(np.minimum(t_s[:, None], lengths_s) @ devices.astype(np.float64))

    @property
    def pooled_share(self) -> float:
        """Share of all recorded device-time that is online."""
        return float(self.online_by_hour_s.sum() / self.recorded_by_hour_s.sum())

    @property
    def observed_share(self) -> float:
        """Share of the observed device-time that is online; nan if no time was observed."""
        unseen = self.unobserved_share
        if unseen >= 1:
            return float("nan")
        online = self.pooled_share - (unseen if self.intervals.unobserved_as == "present" else 0.0)
        return max(online, 0.0) / (1 - unseen)

    @property
    def share_by_hour(self) -> Floats:
        """Share of devices online in each hour of the day, [24]; nan for an hour that was not recorded."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.online_by_hour_s / self.recorded_by_hour_s)


def anatomy(intervals: Intervals) -> Anatomy:
    """Statistics of a trace of finite length; no gap or period continues across its end."""
    count = intervals.device_count
    duration_s = intervals.end_s - intervals.start_s
    online_s = np.bincount(intervals.device, duration_s, minlength=count)
    same = intervals.device[1:] == intervals.device[:-1]
    gap_s = (intervals.start_s[1:] - intervals.end_s[:-1])[same]
    gap_device = intervals.device[1:][same]
    gaps = np.bincount(gap_device, minlength=count)
    mean_gap_s = np.bincount(gap_device, gap_s, minlength=count)[gaps > 0] / gaps[gaps > 0]
    longest_gap_s = np.zeros(count)
    np.maximum.at(longest_gap_s, gap_device, gap_s)
    return Anatomy(
        intervals=intervals,
        length_s=float(intervals.length_s.max()),
        unobserved_share=intervals.unobserved_share,
        online_share=online_s / intervals.length_s,
        sessions=np.bincount(intervals.device, minlength=count),
        duration_s=duration_s,
        gap_s=gap_s,
        mean_gap_s=mean_gap_s,
        longest_gap_s=longest_gap_s,
        online_by_hour_s=_by_hour_s(intervals.start_s, intervals.end_s),
        recorded_by_hour_s=_by_hour_s(np.zeros(count), intervals.length_s),
    )


def _by_hour_s(start_s: Floats, end_s: Floats) -> Floats:
    """Seconds that all periods together have in each hour of the day, [24]."""
    if not len(end_s):
        return np.zeros(24)
    hours = int(-(-end_s.max() // HOUR_S))
    edges_s = np.arange(hours + 1) * HOUR_S

    def passed_s(instants_s: Floats) -> Floats:
        """For every edge, the sum of the times passed since those ``instants_s`` that lie before it."""
        ordered_s = np.sort(instants_s)
        sums_s = np.append(0.0, np.cumsum(ordered_s))
        before = np.searchsorted(ordered_s, edges_s, "right")
        return np.asarray(before * edges_s - sums_s[before])

    in_hour_s = np.diff(passed_s(start_s) - passed_s(end_s))
    return np.asarray(np.bincount(np.arange(hours) % 24, in_hour_s, minlength=24), dtype=np.float64)
