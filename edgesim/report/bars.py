"""The timeline's bars: every row of ``activities``, and the time in which devices were away."""

from typing import Any

import numpy as np
import pandas as pd

from edgesim.activities import ON_AIR
from edgesim.report import states
from edgesim.report.columns import apart, small, whole

_TICKS_PER_ROUND = 1e4
_MOST_TICKS = 2**30
_BAND_STEPS = 10_000


def with_away(activities: pd.DataFrame, absences: pd.DataFrame | None = None) -> pd.DataFrame:
    """The rows by device and time, and ``away`` between each paused row and the next one of its device.

    ``absences`` (`edgesim.folder.rows_file`) are away, too, where the device does nothing then; their round is 0. No
    device is away behind a row that a handover has cut (``handed_over``). Columns ``round``, ``device``, ``activity``,
    ``outcome``, ``t_start_s``, ``t_end_s``, ``bandwidth_hz`` and, if the activities have them, ``station`` and
    ``received``.
    """
    rows = _with_pauses(activities)
    if absences is None or absences.empty:
        return rows
    away = _idle(absences, rows).assign(round=0, activity=states.AWAY, outcome="done", bandwidth_hz=0.0, station=0)
    away = away.assign(received=1.0)
    both = pd.concat([rows, away[rows.columns]])
    return both.sort_values(["device", "t_start_s", "t_end_s"], kind="stable", ignore_index=True)


def _idle(absences: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The parts of absences in which no row of the same device lies, by a sweep over the ends of both."""
    parts = [
        pd.DataFrame({"device": of["device"], "t_s": of[edge], "absent": absent * sign, "busy": (1 - absent) * sign})
        for of, absent in ((absences, 1), (rows, 0))
        for edge, sign in (("t_start_s", 1), ("t_end_s", -1))
    ]
    edges = pd.concat(parts).sort_values(["device", "t_s"], kind="stable", ignore_index=True)
    # All that begins for a device ends, so that the sums are 0 where the next device begins.
    free = (edges["absent"].cumsum() > 0) & (edges["busy"].cumsum() == 0)
    idle = pd.DataFrame({"device": edges["device"], "t_start_s": edges["t_s"], "t_end_s": edges["t_s"].shift(-1)})[free]
    return idle[idle["t_end_s"] > idle["t_start_s"]]


def _with_pauses(activities: pd.DataFrame) -> pd.DataFrame:
    """The rows by device and time, and one of ``away`` between each paused row and the next one of its device."""
    columns = ["round", "device", "activity", "outcome", "t_start_s", "t_end_s", "bandwidth_hz"]
    columns += [name for name in ("station", "received", "handed_over") if name in activities]
    rows = activities[columns].sort_values(["device", "t_start_s", "t_end_s"], kind="stable", ignore_index=True)
    follows = rows["device"].eq(rows["device"].shift(-1))
    paused = rows["outcome"].eq("paused") & follows
    if "handed_over" in rows:
        paused &= ~rows.pop("handed_over")
    if not paused.any():
        return rows
    away = rows[paused].assign(activity=states.AWAY, outcome="done", bandwidth_hz=0.0, t_start_s=rows["t_end_s"])
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
    from its start to its end; ``band`` the band of an upload in steps of ``band_step_hz``; where rows have them,
    ``station`` the one that it was sent to and ``received`` the thousandths of it that were received.
    """
    start, end = (np.rint(rows[name].to_numpy() / tick).astype(np.int64) for name in ("t_start_s", "t_end_s"))
    band_hz = np.where(rows["activity"].isin(ON_AIR), rows["bandwidth_hz"].fillna(0.0), 0.0)
    step_hz = float(band_hz.max(initial=0.0)) / _BAND_STEPS or 1.0
    stations = {"station": whole(rows["station"])} if "station" in rows else {}
    return {
        "tick_s": tick,
        "band_step_hz": step_hz,
        "gap": apart(start - np.append(0, end[:-1])[: len(start)]),
        "length": apart(end - start),
        "round": whole(rows["round"]),
        "device": whole(rows["device"]),
        "code": small(states.codes(rows)),
        "band": apart(np.rint(band_hz / step_hz)),
        **({"received": apart(np.ceil(1000 * rows["received"]).astype(np.int64))} if "received" in rows else {}),
        **stations,
    }
