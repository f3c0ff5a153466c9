"""Many devices: the timeline of groups of neighbouring devices in equal spans of time, instead of every bar."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from edgesim.activities import ON_AIR
from edgesim.base.arrays import Floats
from edgesim.report import states
from edgesim.report.columns import whole

GROUPS, SPANS = 100, 1_000
"""Rows and columns of the picture."""

HUNDREDTHS = 100
"""Parts of a device in which numbers of devices are given."""


def group_size(devices: int) -> int:
    """Number of neighbouring devices in a group."""
    return -(-devices // GROUPS)


def grouped(rows: pd.DataFrame, rounds: pd.DataFrame, devices: int, end_s: float) -> dict[str, Any]:
    """Mean number of devices in each state, by group and span, of the rows that `bars.with_away` gives.

    ``states`` are packed columns by name, of the states that occur: group after group, a value per span, in hundredths
    of a device. ``band_hz`` is the mean band of the uploads in a span, all groups together; ``who`` is `taking_part`.
    """
    size = group_size(devices)
    count = -(-devices // size)
    start_s, end = (rows[name].to_numpy(dtype=np.float64) for name in ("t_start_s", "t_end_s"))
    group = rows["device"].to_numpy(dtype=np.int64) // size
    state = np.array(states.state_of_code())[states.codes(rows)]
    span_s = end_s / SPANS
    busy = {}
    for place in np.unique(state):
        mine = state == place
        busy[states.NAMES[place]] = overlaps_s(start_s[mine], end[mine], group[mine], count, span_s) / span_s
    upload = rows["activity"].isin(ON_AIR).to_numpy()
    band_hz = rows["bandwidth_hz"].fillna(0.0).to_numpy(dtype=np.float64)[upload]
    one_row = np.zeros(upload.sum(), dtype=np.int64)
    hz = overlaps_s(start_s[upload], end[upload], one_row, 1, span_s, band_hz)[0] / span_s
    return {
        "size": size,
        "count": count,
        "spans": SPANS,
        "span_s": span_s,
        "band_hz": [float(f"{value:.4g}") for value in hz],
        "who": taking_part(rows, rounds, state, size, count),
        "states": _counts(busy),
    }


def taking_part(rows: pd.DataFrame, rounds: pd.DataFrame, state: NDArray[Any], size: int, count: int) -> dict[str, Any]:
    """Mean number of devices by what came of their work in a round, by group and block of rounds: as `grouped`.

    Of several states of a device in a round the last of `states.STATES` counts.
    """
    numbers = rounds["round"].to_numpy()
    block = -(-len(numbers) // SPANS)
    spans = -(-len(numbers) // block)
    place = np.searchsorted(numbers, rows["round"])
    known = (place < len(numbers)) & np.isin(rows["round"], numbers)
    worst = pd.DataFrame({"place": place, "device": rows["device"], "state": state})[known]
    worst = worst.groupby(["place", "device"], as_index=False)["state"].max()
    cell = (worst["device"] // size * spans + worst["place"] // block).to_numpy()
    busy = {
        states.NAMES[code]: np.bincount(cell[worst["state"] == code], minlength=count * spans) / block
        for code in np.unique(worst["state"])
    }
    return {"spans": spans, "block": block, "states": _counts(busy)}


def _counts(busy: dict[str, Any]) -> dict[str, Any]:
    return {name: whole(np.rint(of * HUNDREDTHS).ravel()) for name, of in busy.items()}


def overlaps_s(
    start_s: Floats, end_s: Floats, group: Any, count: int, span_s: float, weight: Floats | None = None
) -> Floats:
    """Seconds, times weight, that the intervals of each group spend in each of `SPANS` spans, [groups, spans].

    The time spent until an edge is the sum of ``edge - start`` over the intervals begun before it, less the same of
    the ends.
    """
    weight = np.ones(len(start_s)) if weight is None else weight
    edges_s = span_s * np.arange(1, SPANS + 1)
    until = np.zeros((count, SPANS))
    for at_s, sign in ((start_s, 1.0), (end_s, -1.0)):
        # An interval that begins in a span counts from that span's end on.
        span = np.clip((at_s / span_s).astype(np.int64), 0, SPANS - 1)
        place = group * SPANS + span
        begun, sums = (
            np.bincount(place, of, minlength=count * SPANS).reshape(count, SPANS).cumsum(axis=1)
            for of in (weight, weight * at_s)
        )
        until += sign * (begun * edges_s - sums)
    return np.asarray(np.maximum(np.diff(until, prepend=0.0, axis=1), 0.0))
