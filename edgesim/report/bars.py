"""The timeline's bars: every row of ``activities``, and the time that devices were away with work of theirs."""

from typing import Any

import numpy as np
import pandas as pd

from edgesim.report import states
from edgesim.report.columns import apart, small, whole

_TICKS_PER_ROUND = 1e4
_MOST_TICKS = 2**30
_BAND_STEPS = 10_000


def with_away(activities: pd.DataFrame) -> pd.DataFrame:
    """The rows by device and time, and one of ``away`` between each paused row and the next one of its device.

    Columns ``round``, ``device``, ``activity``, ``outcome``, ``t_start_s``, ``t_end_s``, ``bandwidth_hz``.
    """
    columns = ["round", "device", "activity", "outcome", "t_start_s", "t_end_s", "bandwidth_hz"]
    rows = activities[columns].sort_values(["device", "t_start_s", "t_end_s"], kind="stable", ignore_index=True)
    follows = rows["device"].eq(rows["device"].shift(-1))
    paused = rows["outcome"].eq("paused") & follows
    if not paused.any():
        return rows
    away = rows[paused].assign(activity="away", outcome="done", bandwidth_hz=0.0, t_start_s=rows["t_end_s"])
    away["t_end_s"] = np.maximum(rows["t_start_s"].shift(-1)[paused], away["t_start_s"])
    both = pd.concat([rows, away])
    return both.sort_values(["device", "t_start_s", "t_end_s"], kind="stable", ignore_index=True)


def tick_s(rounds: pd.DataFrame, end_s: float) -> float:
    """The step of the bars' ends: a power of ten, at most 1e-4 of a usual round and coarse enough for 32 bits."""
    length_s = float((rounds["t_end_s"] - rounds["t_start_s"]).median()) or end_s
    fine = 10.0 ** np.floor(np.log10(length_s / _TICKS_PER_ROUND))
    coarse = 10.0 ** np.ceil(np.log10(end_s / _MOST_TICKS))
    return float(max(fine, coarse))


def bars(rows: pd.DataFrame, tick: float) -> dict[str, Any]:
    """Columns of the rows that `with_away` gives, packed.

    ``gap`` is the time in ticks from the end of the bar above to a bar's start (from 0 for the first), ``length`` that
    from its start to its end; ``band`` the band of an upload in steps of ``band_step_hz``.
    """
    start, end = (np.rint(rows[name].to_numpy() / tick).astype(np.int64) for name in ("t_start_s", "t_end_s"))
    band_hz = np.where(rows["activity"] == "upload", rows["bandwidth_hz"].fillna(0.0), 0.0)
    step_hz = float(band_hz.max(initial=0.0)) / _BAND_STEPS or 1.0
    return {
        "tick_s": tick,
        "band_step_hz": step_hz,
        "gap": apart(start - np.append(0, end[:-1])[: len(start)]),
        "length": apart(end - start),
        "round": whole(rows["round"]),
        "device": whole(rows["device"]),
        "code": small(states.codes(rows)),
        "band": apart(np.rint(band_hz / step_hz)),
    }
