"""Rounds that one policy saves against the others on the way to an accuracy, seed by seed (FedTeddi, section V-B)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from edgesim.analysis.differences import margin, summarise_differences
from edgesim.analysis.judgement import describe
from edgesim.analysis.measures import to_target
from edgesim.analysis.metrics import saving
from edgesim.analysis.pairing import comparisons, pairings
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.statistics import mean_interval


def savings(runs: Sequence[RunFolder], policy: str, target: float, measure: str = "rounds_to_target") -> pd.DataFrame:
    """One row for each other policy at each combination of the other knobs; empty without pairs.

    Columns: those knobs, with ``policy`` the other one; ``pairs`` of seeds; ``never``, pairs of which a run never
    reached the target; ``rounds`` and ``rounds_policy``, mean rounds of the other and of ``policy``; ``saving``, the
    mean over seeds of 1 - rounds(``policy``) / rounds(other), with its 95 % t interval ``low`` to ``high``; ``p_holm``
    of the difference in rounds, corrected for all rows together, and its ``reading``; ``seeds_needed`` to detect a
    difference of a tenth of the rounds of ``policy`` with the spread of these seeds. Where a run never reached the
    target, rounds are restricted to the last round that all such runs tested. ``measure`` is ``rounds_to_target`` or
    ``rounds_to_stay``. Raises `EdgesimError` for a target that is not above a start accuracy.
    """
    measures = {run.folder: to_target(run, target) for run in runs}
    compared = comparisons(pairings(runs, "policy", policy), [measure], lambda run: measures[run.folder])
    table = summarise_differences(compared)
    sides = [of.sides for of in compared]
    wanted = [margin(of) for of in compared]
    needed = describe(sides, table["alpha"].to_list(), wanted)["seeds_needed"]
    rows = []
    for of in sides:
        other, own = of.times
        bounds = mean_interval([saving(mine, theirs) for mine, theirs in zip(own, other, strict=True)])
        rows.append([np.mean(other), np.mean(own), *bounds])
    names = ["rounds", "rounds_policy", "saving", "low", "high"]
    knobs = list(table.columns[: table.columns.get_loc("measure")])
    return pd.concat(
        [
            table[[*knobs, "pairs", "never"]],
            pd.DataFrame(rows, columns=names, dtype=np.float64),
            table[["p_holm", "reading"]],
            needed,
        ],
        axis=1,
    )
