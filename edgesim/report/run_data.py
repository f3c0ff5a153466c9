"""Data of the pictures of one run, packed for the page."""

from typing import Any

import numpy as np
import pandas as pd

from edgesim.analysis.band_use import stations_of
from edgesim.analysis.metrics import scheduled_share
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.streams import received_share
from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.folder.rows_file import ABSENCES, WAYS
from edgesim.folder.work_kinds import KINDS
from edgesim.report import bars, groups, states
from edgesim.report.columns import apart, exact, whole

AGGREGATED_FROM = 10_000
"""Devices from which on the pictures show groups of devices, and squares of the map."""
MOST_BARS = 1_000_000
"""Bars of one run, above which its timeline shows groups of devices too: a page of 4 MB."""
MOST_BLOCKS = 300
"""Rounds that are shown one by one where the work of each is stacked; more of them in blocks."""
SQUARES = 40
"""Squares of an aggregated map along each side."""
MOST_CORNERS = 200_000
"""Corners of a run's ways above which the map does not follow its devices: a page of 5 MB."""

_COUNTS = ("candidates", "selected", "arrived", "late", "dropped")


def run_data(run: RunFolder, name: str) -> dict[str, Any]:
    """Everything that the page draws of a run: rounds, bars or groups, devices, stations and work by kind."""
    rounds, activities = run.rounds.sort_values("round"), run.activities
    devices = run.devices
    devices = devices[devices["frame"] == devices["frame"].max()].sort_values("device")
    count = int(devices["device"].max()) + 1
    _check(run, activities, count)
    end_s = float(max(rounds["t_end_s"].max(), activities["t_end_s"].max() if len(activities) else 0.0))
    if (run.metrics["name"] == "task_station").any():
        # Of a device that moves the station is that of each task, not the one that it had first.
        activities = activities.assign(station=_numbers_of(run, stations_of(run, activities)))
    rows = bars.with_away(_cut(run, _of_streams(run, activities)), _absences(run, count, end_s))
    many = count >= AGGREGATED_FROM or len(rows) > MOST_BARS
    stations = run.stations
    timeline: dict[str, Any] = (
        {"groups": groups.grouped(rows, rounds, count, end_s)}
        if many
        else {"bars": bars.bars(rows, bars.tick_s(rounds, end_s))}
    )
    return {
        "name": name,
        "seed": run.seed,
        "end_s": end_s,
        "devices": count,
        "rows": len(rows),
        "reshared": run.sharing == "reshared",
        "stations": {
            "name": [str(text) for text in stations["name"]],
            "x_m": stations["x_m"].tolist(),
            "y_m": stations["y_m"].tolist(),
            "band_hz": stations["bandwidth_hz"].tolist(),
        },
        "rounds": _rounds(rounds),
        "map": _map(run, rounds, activities, devices),
        "work": _work(run, rounds),
        "ways": _ways(run, devices),
        "handovers": _handovers(run, count),
        **timeline,
    }


def _of_streams(run: RunFolder, activities: pd.DataFrame) -> pd.DataFrame:
    """The rows with the share ``received`` of each upload and an outcome of its own for parts, where there are any."""
    share = received_share(run, activities)
    if not (share < 1).any():
        return activities
    return activities.assign(received=share, outcome=activities["outcome"].where(share == 1, states.IN_PART))


def _cut(run: RunFolder, activities: pd.DataFrame) -> pd.DataFrame:
    """The rows with whether each ends at a handover of its device (``handed_over``), in runs with handovers."""
    handovers = run.handovers
    if handovers.empty:
        return activities
    ends = pd.MultiIndex.from_frame(activities[["device", "t_end_s"]])
    return activities.assign(handed_over=ends.isin(pd.MultiIndex.from_frame(handovers[["device", "t_s"]])))


def _check(run: RunFolder, activities: pd.DataFrame, devices: int) -> None:
    """Refuse rows that no picture has a place for; raises `EdgesimError`."""
    for fault, bad in (
        ("device is not in the table devices", activities["device"] >= devices),
        ("activity begins before instant 0", activities["t_start_s"] < 0),
    ):
        if bad.any():
            raise EdgesimError(f"{run.folder}: table activities: row {int(bad.idxmax()) + 1}: its {fault}")


def _absences(run: RunFolder, devices: int, end_s: float) -> pd.DataFrame | None:
    """Absences of the devices until ``end_s``; raises `EdgesimError` for devices that the run does not have."""
    absences = ABSENCES.read(run.folder)
    if absences is None:
        return None
    if absences["device"].max() >= devices:
        raise EdgesimError(f"{run.folder}: table absences: its device {absences['device'].max()} is not in devices")
    return absences[absences["t_start_s"] < end_s].assign(t_end_s=absences["t_end_s"].clip(upper=end_s))


def _rounds(rounds: pd.DataFrame) -> dict[str, Any]:
    table = {
        "number": whole(rounds["round"]),
        "start_s": exact(rounds["t_start_s"]),
        "end_s": exact(rounds["t_end_s"]),
        "accuracy": exact(rounds["test_accuracy"]),
        "bits": exact(rounds["bits_up"].fillna(0.0).cumsum()),
        "joules": exact(rounds["energy_j"].fillna(0.0).cumsum()),
    }
    return table | {name: apart(rounds[name].fillna(0)) for name in _COUNTS}


def _map(run: RunFolder, rounds: pd.DataFrame, activities: pd.DataFrame, devices: pd.DataFrame) -> dict[str, Any]:
    """Places and use of the devices, or of squares of the cell; ``station`` counts the rows of ``stations``."""
    of_rounds = activities[activities["round"].isin(rounds["round"])]
    use = scheduled_share(of_rounds, devices["device"].to_numpy(), len(rounds))
    station = _numbers_of(run, devices["station"])
    x_m, y_m = (devices[axis].to_numpy(dtype=np.float64) for axis in ("x_m", "y_m"))
    number = devices["device"].to_numpy()
    if len(devices) < AGGREGATED_FROM:
        amounts = {"x_m": exact(x_m), "y_m": exact(y_m), "use": exact(use)}
        return amounts | {"number": whole(number), "station": whole(station)}
    return squares(x_m, y_m, use)


def _numbers_of(run: RunFolder, station: pd.Series) -> Integers:
    """Row of ``stations`` of each of some stations, [n]."""
    order = {station: i for i, station in enumerate(run.stations["station"])}
    rows: Integers = station.map(order).fillna(0).to_numpy(dtype=np.int64)
    return rows


def squares(x_m: Floats, y_m: Floats, use: Floats) -> dict[str, Any]:
    """Mean use and number of the devices in each square of a grid over their places; squares without any are absent."""
    known = np.isfinite(x_m) & np.isfinite(y_m)
    places, use = np.column_stack([x_m, y_m])[known], use[known]
    if not len(places):
        return {"x_m": exact([]), "y_m": exact([]), "use": exact([]), "count": whole([])}
    low, side_m = places.min(axis=0), float(np.ptp(places, axis=0).max()) / SQUARES or 1.0
    column, row = np.minimum(((places - low) / side_m).astype(np.int64), SQUARES - 1).T
    square, inverse, count = np.unique(column * SQUARES + row, return_inverse=True, return_counts=True)
    middle = (np.column_stack([square // SQUARES, square % SQUARES]) + 0.5) * side_m + low
    mean = np.bincount(inverse, use) / count
    amounts = {"x_m": exact(middle[:, 0]), "y_m": exact(middle[:, 1]), "use": exact(mean)}
    return amounts | {"count": whole(count)}


def _ways(run: RunFolder, devices: pd.DataFrame) -> dict[str, Any] | None:
    """Corners of the ways of the devices, one after another, and where those of each begin; None if none is known.

    Raises `EdgesimError` for devices that the run does not have.
    """
    ways = WAYS.read(run.folder)
    if ways is None or len(ways) > MOST_CORNERS or len(devices) >= AGGREGATED_FROM:
        return None
    numbers = devices["device"].to_numpy()
    if not np.array_equal(ways["device"].unique(), numbers):
        raise EdgesimError(
            f"{run.folder}: table ways: expected rows of each device of the table devices, and no others"
        )
    begins = np.searchsorted(ways["device"].to_numpy(), np.append(numbers, numbers[-1] + 1))
    return {"begin": whole(begins)} | {name: exact(ways[name]) for name in ("t_s", "x_m", "y_m")}


def _handovers(run: RunFolder, devices: int) -> dict[str, Any] | None:
    """Handovers by device and time, with the rows of their stations; None in runs without.

    Raises `EdgesimError` for devices that the run does not have.
    """
    handovers = run.handovers
    if handovers.empty or devices >= AGGREGATED_FROM:
        return None
    if handovers["device"].max() >= devices:
        raise EdgesimError(f"{run.folder}: table handovers: its device {handovers['device'].max()} is not in devices")
    stations = {key: whole(_numbers_of(run, handovers[f"{key}_station"])) for key in ("from", "to")}
    columns = {name: whole(handovers[name]) for name in ("device", "round")}
    return columns | stations | {"t_s": exact(handovers["t_s"])}


def _work(run: RunFolder, rounds: pd.DataFrame) -> dict[str, Any]:
    """Seconds, bits and joules of each kind of work by block of rounds."""
    block = -(-len(rounds) // MOST_BLOCKS)
    numbers = rounds["round"].to_numpy()
    starts = np.arange(0, len(numbers), block)
    lasts = numbers[np.minimum(starts + block, len(numbers)) - 1]
    work = run.work_by_kind[run.work_by_kind["round"].isin(numbers)]
    packed: dict[str, Any] = {"block": block, "first": whole(numbers[starts]), "last": whole(lasts)}
    for amount in ("seconds", "bits", "joules"):
        table = work.pivot(index="round", columns="kind", values=amount)
        table = table.reindex(index=pd.Index(numbers), columns=list(KINDS)).fillna(0.0)
        sums = np.add.reduceat(table.to_numpy(dtype=np.float64), starts, axis=0)
        packed[amount] = {kind: exact(column) for kind, column in zip(KINDS, sums.T, strict=True)}
    return packed
