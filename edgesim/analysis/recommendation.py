"""Which choice to take in which place, such as which algorithm at which bandwidth: only where tests are significant.

Every pair of choices is compared in every place, seed by seed, and p is corrected by Holm for all these comparisons
together. A choice is ruled out where another one is shown to be better. With a probability of 95 % or more no
comparison errs, and then the best choice is among those that are left: if it is one, take it.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from edgesim.analysis.censored import known
from edgesim.analysis.judgement import Sides, judge
from edgesim.analysis.statistics import LEVEL, mean_interval
from edgesim.base.errors import EdgesimError

UNDISTINGUISHED = "cannot be told"
"""The cell of such a row, as it stands in tables of earlier versions."""


def compare(scores: pd.DataFrame, places: Sequence[str], choice: str) -> pd.DataFrame:
    """Every pair of choices in every place: one row each, in the order of the scores.

    ``scores`` has the columns ``places``, ``choice``, ``seed`` and ``value``, the higher the better. Columns: the
    places, ``better`` and ``worse`` (by their means), ``pairs`` of seeds, ``difference`` (better minus worse), its p
    (paired t test), ``p_holm``, and the ends ``low`` and ``high`` of its t interval at the level at which p was judged
    (`edgesim.analysis.statistics.holm_levels`). Raises `EdgesimError` where a choice lacks a seed that another has.
    """
    rows, sides = [], []
    for place, group in scores.groupby(list(places), sort=False):
        table = _by_seed(group, dict(zip(places, place, strict=True)), choice)
        for first, second in itertools.combinations(table.columns, 2):
            is_ahead = table[first].mean() >= table[second].mean()
            better, worse = (first, second) if is_ahead else (second, first)
            rows.append(dict(zip(places, place, strict=True)) | {"better": better, "worse": worse})
            sides.append(Sides(known(table[better].to_numpy()), known(table[worse].to_numpy())))
    judged = judge(sides)[["pairs", "difference", "low_holm", "high_holm", "p", "p_holm"]]
    judged = judged.rename(columns={"low_holm": "low", "high_holm": "high"})
    return pd.concat([pd.DataFrame(rows, columns=[*places, "better", "worse"]), judged], axis=1)


def stand(scores: pd.DataFrame, compared: pd.DataFrame, places: Sequence[str], choice: str) -> pd.DataFrame:
    """One row per place and choice, the highest mean first, with ``compared`` as from `compare`.

    ``value`` is the mean over seeds with its 95 % t interval ``low`` to ``high``, of ``seeds``; ``behind`` is what it
    lacks against the highest mean of the place, with ``behind_low`` to ``behind_high`` and ``p_holm``, all empty for
    that one itself; ``ruled_out_by`` are the choices shown to be better, separated by commas.
    """
    rows = []
    for place, group in scores.groupby(list(places), sort=False):
        here = dict(zip(places, place, strict=True))
        pairs = compared[(compared[list(places)] == pd.Series(here)).all(axis=1)]
        means = {name: mean_interval(of) for name, of in group.groupby(choice, sort=False)["value"]}
        ranked = sorted(means, key=lambda name: -means[name].mean)
        for name in ranked:
            shown = pairs[(pairs["worse"] == name) & (pairs["p_holm"] < 1 - LEVEL)]["better"]
            to_first = pairs[(pairs["worse"] == name) & (pairs["better"] == ranked[0])]
            behind = to_first[["difference", "low", "high", "p_holm"]].to_numpy().reshape(-1).tolist() or [np.nan] * 4
            rows.append(
                here
                | {choice: name, "seeds": int((group[choice] == name).sum()), "value": means[name].mean}
                | {"low": means[name].low, "high": means[name].high}
                | dict(zip(("behind", "behind_low", "behind_high", "p_holm"), behind, strict=True))
                | {"ruled_out_by": ", ".join(shown)}
            )
    return pd.DataFrame(rows)


def recommend(standings: pd.DataFrame, places: Sequence[str], choice: str) -> pd.DataFrame:
    """One row per place: the choice to ``take``, or `UNDISTINGUISHED`; ``left`` and ``ruled_out`` name the choices.

    ``standings`` as from `stand`. Names are in the order of the means, separated by commas.
    """
    rows = []
    for place, group in standings.groupby(list(places), sort=False):
        left = group.loc[group["ruled_out_by"] == "", choice]
        out = group.loc[group["ruled_out_by"] != "", choice]
        taken = {"take": left.iloc[0] if len(left) == 1 else UNDISTINGUISHED}
        rows.append(
            dict(zip(places, place, strict=True)) | taken | {"left": ", ".join(left), "ruled_out": ", ".join(out)}
        )
    return pd.DataFrame(rows)


def _by_seed(group: pd.DataFrame, place: dict[str, object], choice: str) -> pd.DataFrame:
    """The values of one place, a row per seed and a column per choice; raises `EdgesimError` for a missing seed."""
    columns = list(dict.fromkeys(group[choice]))
    table = group.pivot(index="seed", columns=choice, values="value")[columns]
    for name in columns:
        if (missing := table.index[table[name].isna()]).size:
            where = ", ".join(f"{knob} = {value}" for knob, value in place.items())
            raise EdgesimError(
                f"{where}: {choice} = {name} has no value of seed {missing[0]}, which others have; a comparison needs "
                "every seed of every choice"
            )
    return table
