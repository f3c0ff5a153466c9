"""Rounds that one policy saves against the others on the way to an accuracy, seed by seed (FedTeddi, section V-B)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from edgesim.analysis.differences import margin, summarise_differences
from edgesim.analysis.judgement import Sides, describe
from edgesim.analysis.measures import to_target
from edgesim.analysis.pairing import comparisons, pairings
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.statistics import mean_interval
from edgesim.base.arrays import Floats


def savings(runs: Sequence[RunFolder], policy: str, target: float, measure: str = "rounds_to_target") -> pd.DataFrame:
    """One row for each other policy at each combination of the other knobs; empty without pairs.

    Columns: those knobs, with ``policy`` the other one; ``pairs`` of seeds; ``never`` and ``never_policy``, those of
    which the run of the other one and that of ``policy`` never reached the target; ``rounds`` and ``rounds_policy``,
    mean rounds of both, restricted to the last round that all runs that never reached it tested; ``saving`` to
    ``saving_most``, between which the mean over seeds of 1 - rounds(``policy``) / rounds(other) must lie (see
    `bounds`), NaN for an end that is not known; ``low`` to ``high``, its 95 % t interval, not corrected, NaN unless all
    runs reached the target; ``p_holm`` of the difference in rounds, corrected for all rows together (where a run never
    reached the target, of that of the logarithms of restricted rounds), and its ``reading``; ``seeds_needed`` to detect
    a difference of a tenth of the rounds of ``policy`` with the spread of these seeds. ``measure`` is
    ``rounds_to_target`` or ``rounds_to_stay``. Raises `EdgesimError` for a target that is not above a start accuracy.
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
        least, most = bounds(of)
        interval = mean_interval(least)[1:] if np.array_equal(least, most) else (np.nan, np.nan)
        never = (np.isnan(side.values).sum() for side in (of.first, of.second))
        saved = [end if np.isfinite(end) else np.nan for end in (least.mean(), most.mean())]
        rows.append([*never, np.mean(other), np.mean(own), *saved, *interval])
    names = ["never", "never_policy", "rounds", "rounds_policy", "saving", "saving_most", "low", "high"]
    knobs = list(table.columns[: table.columns.get_loc("measure")])
    return pd.concat(
        [
            table[[*knobs, "pairs"]],
            pd.DataFrame(rows, columns=names, dtype=np.float64).astype(dict.fromkeys(names[:2], np.int64)),
            table[["p_holm", "reading"]],
            needed,
        ],
        axis=1,
    )


def bounds(sides: Sides) -> tuple[Floats, Floats]:
    """Least and largest share of rounds, [n] seeds each, that the second choice can have saved against the first.

    Both are the same where both runs reached the target. A run that never did would take more rounds than it tested:
    against a first one that did not, at least 1 - t / bound is saved and at most everything; by a second one that did
    not, at most 1 - bound / t, and there is no least.
    """
    other, own = sides.first, sides.second
    least = 1.0 - np.where(np.isnan(own.values), np.inf, own.values) / np.fmax(other.values, other.bounds)
    most = 1.0 - np.fmax(own.values, own.bounds) / np.where(np.isnan(other.values), np.inf, other.values)
    return least, most
