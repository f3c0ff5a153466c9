"""Work that led nowhere: seconds, bits and joules of devices that no update of the server shows for.

A *task* is what one device did in one round. The server used it when the device has a row in ``updates`` whose
rounds, from ``round - staleness`` to ``round``, include the task's. A row of ``activities`` is then of one kind:

- ``useful``: it ended ``done`` or was ``paused`` in a task that was used, or ended ``late`` in one that was used
  later, with staleness;
- ``dropped``, ``late`` and ``unscheduled``: it ended so, or it ended ``done`` in a task of which another row did,
  since the result of a download or of computing is never used without its upload. Of several such ends the first
  in this order counts. A task whose rows are all ``done`` but hold no upload is ``dropped``: the device was taken,
  and left before its first bit;
- ``unused``: it was ``cancelled`` by the server, or ended ``done`` in a task that was uploaded but not merged.

Every row has one kind, so the kinds add up to all of ``activities``. Bits are those of uploads and of downloads that
took time; a broadcast that costs no time has no row and counts nowhere.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

USEFUL = "useful"
WASTED = ("late", "dropped", "unscheduled", "unused")
KINDS = (USEFUL, *WASTED)
AMOUNTS = ("seconds", "bits", "joules")

#: Ends that spoil a task's rows, the strongest last.
_ENDS: Mapping[str, str] = {
    "cancelled": "unused",
    "unscheduled": "unscheduled",
    "late": "late",
    "dropped": "dropped",
}


def kinds(activities: pd.DataFrame, updates: pd.DataFrame) -> NDArray[np.object_]:
    """What each row of ``activities`` was good for, one of `KINDS` per row, [rows]."""
    if activities.empty:
        return np.empty(0, dtype=object)
    outcome = activities["outcome"].to_numpy()
    keys, task = np.unique(_keys(activities["round"], activities["device"]), return_inverse=True)
    used = np.isin(keys, _used(updates))
    sent = np.zeros(len(keys), dtype=bool)
    sent[task[(activities["activity"] == "upload").to_numpy()]] = True
    fate = np.where(sent, "unused", "dropped").astype(object)
    for end, kind in _ENDS.items():
        fate[task[outcome == end]] = kind
    of_row = fate[task]
    for end, kind in _ENDS.items():
        of_row[outcome == end] = kind
    of_row[used[task] & np.isin(outcome, ["done", "late", "paused"])] = USEFUL
    return of_row


def work_by_kind(activities: pd.DataFrame, updates: pd.DataFrame) -> pd.DataFrame:
    """All work by round and kind, in long form: ``round``, ``kind``, ``seconds``, ``bits``, ``joules``.

    Rows by round, then in the order of `KINDS`; a kind that a round lacks has no row there. Each amount adds up
    to that of ``activities``, round by round. Seconds are those of devices: two that work for one make two.
    """
    work = pd.DataFrame(
        {
            "round": activities["round"],
            "kind": pd.Categorical(kinds(activities, updates), categories=list(KINDS)),
            "seconds": activities["t_end_s"] - activities["t_start_s"],
            "bits": activities["bits"],
            "joules": activities["energy_j"],
        }
    )
    table = work.groupby(["round", "kind"], observed=True, as_index=False, sort=True).sum()
    return table.astype({"kind": str})


def wasted(activities: pd.DataFrame, updates: pd.DataFrame) -> pd.DataFrame:
    """The part of `work_by_kind` that led nowhere: everything that is not ``useful``."""
    table = work_by_kind(activities, updates)
    return table[table["kind"] != USEFUL].reset_index(drop=True)


def totals(work: pd.DataFrame) -> pd.DataFrame:
    """Sums over the rounds of `work_by_kind`: one row per kind of `KINDS`, zeros where there is none."""
    return work.groupby("kind")[list(AMOUNTS)].sum().reindex(list(KINDS), fill_value=0.0)


def wasted_share_j(work: pd.DataFrame) -> float:
    """Share of the joules of a whole run's `work_by_kind` that led nowhere; NaN when no energy was spent."""
    joules = totals(work)["joules"]
    spent = float(joules.sum())
    return float(joules[list(WASTED)].sum()) / spent if spent else float("nan")


def _used(updates: pd.DataFrame) -> NDArray[np.int64]:
    """Keys of every round and device whose work an update rests on."""
    staleness = updates["staleness"].to_numpy(dtype=np.int64)
    each = np.repeat(np.arange(len(updates)), staleness + 1)
    back = np.arange(len(each)) - np.repeat(np.cumsum(staleness + 1) - (staleness + 1), staleness + 1)
    return _keys(updates["round"].to_numpy(dtype=np.int64)[each] - back, updates["device"].to_numpy()[each])


def _keys(round: pd.Series | NDArray[np.int64], device: pd.Series | NDArray[np.int64]) -> NDArray[np.int64]:
    """One integer per (round, device), both below 2^31 as in the tables."""
    return np.asarray(round, dtype=np.int64) * 2**32 + np.asarray(device, dtype=np.int64)
