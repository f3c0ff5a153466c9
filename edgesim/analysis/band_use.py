"""Use of a station's band over time."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edgesim.activities import ON_AIR
from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats


class StepSeries(NamedTuple):
    """A share that changes in steps: ``share[i]`` holds from ``t_s[i]`` until ``t_s[i + 1]``; 0 before and after."""

    t_s: Floats
    share: Floats

    def mean(self, t_start_s: float, t_end_s: float) -> float:
        """Mean over a span of time."""
        edges_s = np.clip(np.append(self.t_s, t_end_s), t_start_s, t_end_s)
        return float(np.diff(edges_s) @ self.share) / (t_end_s - t_start_s)


def use_by_station(run: RunFolder) -> Iterator[tuple[Any, StepSeries]]:
    """Each row of ``stations`` with the use of its band."""
    activities = run.activities
    uploads = activities[activities["activity"].isin(ON_AIR)]
    uploads = uploads.assign(station=stations_of(run, uploads))
    for station in run.stations.itertuples():
        own = uploads[uploads["station"] == station.station]
        yield station, band_use(own, float(station.bandwidth_hz), reshared=run.sharing == "reshared")


def stations_of(run: RunFolder, activities: pd.DataFrame) -> pd.Series:
    """Station of each of some rows of ``activities`` of a run.

    It is that of the device in the frame of the row's round or, where devices move among several stations, that of the
    task at the row's end, which changes with handovers.
    """
    of_tasks = run.metrics[run.metrics["name"] == "task_station"]
    if len(of_tasks):
        keys = activities["device"].astype(str) + "/" + activities["task"].astype(str)
        last = keys.map(of_tasks.set_index("key")["value"].astype(int))
        handovers = run.handovers
        return last if handovers.empty else _before_handovers(activities, last, handovers)
    # Rows of a round that the end of the run cut are of the last frame.
    frame = activities["round"].map(run.rounds.set_index("round")["frame"]).fillna(run.devices["frame"].max())
    at = pd.MultiIndex.from_arrays([activities["device"], frame.astype(int)])
    return run.devices.set_index(["device", "frame"])["station"].reindex(at).set_axis(activities.index)


def _before_handovers(activities: pd.DataFrame, last: pd.Series, handovers: pd.DataFrame) -> pd.Series:
    """The station that each row's task leaves by its first handover from the row's end on, or else its ``last`` one."""
    rows = activities[["device", "task", "t_end_s"]].sort_values("t_end_s", kind="stable")
    left = handovers[["device", "task", "t_s", "from_station"]].sort_values("t_s", kind="stable")
    ends = {"left_on": "t_end_s", "right_on": "t_s", "by": ["device", "task"], "direction": "forward"}
    found = pd.merge_asof(rows, left, **ends)["from_station"].set_axis(rows.index)  # type: ignore[call-overload]
    return found.reindex(activities.index).fillna(last).astype(int)


def band_use(uploads: pd.DataFrame, bandwidth_hz: float, *, reshared: bool) -> StepSeries:
    """Share of one station's band that its uploads (rows of ``activities``) occupy.

    Reservations add up. With ``reshared`` the whole band is in use while at least one device uploads; the column
    ``bandwidth_hz``, which then holds each upload's mean, is not read.
    """
    if uploads.empty:
        return StepSeries(np.zeros(1), np.zeros(1))
    width = np.ones(len(uploads)) if reshared else uploads["bandwidth_hz"].to_numpy() / bandwidth_hz
    changes_s = np.concatenate([uploads["t_start_s"], uploads["t_end_s"]])
    t_s, place = np.unique(changes_s, return_inverse=True)
    share = np.asarray(np.cumsum(np.bincount(place, np.concatenate([width, -width]))), dtype=np.float64)
    # Adding and subtracting the same shares leaves rounding errors where the sum should be 0.
    share[np.abs(share) < 1e-9] = 0.0
    return StepSeries(t_s, np.minimum(share, 1.0) if reshared else share)
