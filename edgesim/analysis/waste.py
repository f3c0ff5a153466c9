"""Wasted work: seconds, bits and joules that devices spent on tasks whose update the server never used.

`edgesim.folder.work_kinds` says which rows those are. Bits are those of uploads and of downloads that took time; a
broadcast that takes no time has no row and is not counted.
"""

import numpy as np
import pandas as pd

from edgesim.activities import ON_AIR
from edgesim.base.arrays import Booleans, Integers
from edgesim.folder import work_kinds
from edgesim.folder.work_kinds import KINDS, USEFUL

AMOUNTS = ("seconds", "bits", "joules")


def kinds(activities: pd.DataFrame, updates: pd.DataFrame) -> pd.Categorical:
    """Classify each row of ``activities`` as one of `KINDS`, [rows]."""
    return pd.Categorical.from_codes(_kinds(activities, updates), list(KINDS))


def _kinds(activities: pd.DataFrame, updates: pd.DataFrame) -> Integers:
    """Classify each row of ``activities``: its position in `KINDS`, [rows]."""
    if activities.empty:
        return np.zeros(0, dtype=np.int64)
    rows = _keys(activities["task"], activities["device"])
    merged = _keys(updates["task"], updates["device"])
    # By hashes, several times as fast as by sorting.
    number, keys = pd.factorize(np.concatenate((rows, merged)))
    task, used = number[: len(rows)], np.zeros(len(keys), dtype=bool)
    used[number[len(rows) :]] = True
    is_upload = activities["activity"].isin(ON_AIR).to_numpy()
    place, outcomes = pd.factorize(activities["outcome"])
    outcome = np.array([work_kinds.NUMBER[outcome] for outcome in outcomes])[place]
    if (kept := outcome == work_kinds.NUMBER["kept"]).any():
        used |= _used_later(activities[kept], updates, keys)
    return work_kinds.kinds(task, is_upload, outcome, used)


def work_by_kind(activities: pd.DataFrame, updates: pd.DataFrame) -> pd.DataFrame:
    """All work by round and kind, in long form: ``round``, ``kind``, ``seconds``, ``bits``, ``joules``.

    Rows by round, then in the order of `KINDS`; a kind that a round lacks has no row there. Each amount adds up
    to that of ``activities``, round by round. Seconds are device-seconds: two devices at work for 1 s count as 2 s.
    """
    key = _round_and_kind(activities, updates)
    amounts = pd.DataFrame(
        {
            "key": key,
            "seconds": activities["t_end_s"] - activities["t_start_s"],
            "bits": activities["bits"],
            "joules": activities["energy_j"],
        }
    )
    sums = amounts.groupby("key").sum()
    rounds, kind = np.divmod(sums.index.to_numpy(), len(KINDS))
    columns = {"round": rounds.astype(activities["round"].dtype), "kind": pd.array(np.array(KINDS)[kind], dtype=str)}
    return pd.DataFrame(columns | {name: sums[name].to_numpy() for name in sums})


def totals(work: pd.DataFrame) -> pd.DataFrame:
    """Sums over the rounds of `work_by_kind`: one row per kind of `KINDS`, 0 for kinds that did not occur."""
    place = pd.Index(KINDS, dtype=object).get_indexer(work["kind"].to_numpy(dtype=object))
    table = work[list(AMOUNTS)].assign(place=place).groupby("place").sum().reindex(range(len(KINDS)), fill_value=0.0)
    return table.set_axis(pd.Index(KINDS, dtype=str, name="kind"))


def wasted_share_j(activities: pd.DataFrame, updates: pd.DataFrame) -> float:
    """Share of the joules of a whole run that was wasted; NaN if no energy was spent.

    Equal to the last digit to the share in the `totals` of `work_by_kind`, without the other amounts.
    """
    of_rounds = activities["energy_j"].groupby(_round_and_kind(activities, updates)).sum()
    joules = of_rounds.groupby(of_rounds.index.to_numpy() % len(KINDS)).sum()
    spent = float(joules.sum())
    return float(joules[joules.index != KINDS.index(USEFUL)].sum()) / spent if spent else float("nan")


def _round_and_kind(activities: pd.DataFrame, updates: pd.DataFrame) -> Integers:
    """Number the pairs of round and kind, [rows]: one column is grouped several times as fast as two."""
    return np.asarray(activities["round"], dtype=np.int64) * len(KINDS) + _kinds(activities, updates)


def _used_later(kept: pd.DataFrame, updates: pd.DataFrame, keys: Integers) -> Booleans:
    """Whether each task, by its key, ended with weights that its device kept and the next model contains, [keys]."""
    merges = np.unique(updates["round"])
    place = np.searchsorted(merges, kept["round"], side="right")
    following = np.append(merges, np.iinfo(np.int32).max)[place]
    later = np.isin(_keys(following, kept["device"]), _keys(updates["round"], updates["device"]))
    return np.isin(keys, _keys(kept["task"], kept["device"])[later])


def _keys(number: pd.Series | Integers, device: pd.Series | Integers) -> Integers:
    """One integer per (number, device), both below 2^31 as in the tables."""
    return np.asarray(number, dtype=np.int64) * 2**32 + np.asarray(device, dtype=np.int64)


def shares(work: pd.DataFrame, amount: str) -> dict[str, float]:
    """Share of each kind in an amount of all work, as `work_by_kind` gives it; zeros if there was no work."""
    of_kinds = totals(work)[amount]
    whole = float(of_kinds.sum()) or 1.0
    return {str(kind): float(part) / whole for kind, part in of_kinds.items()}
