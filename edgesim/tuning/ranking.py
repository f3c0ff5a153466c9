"""Order of a study's cells by measures of its summary."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from edgesim.analysis.measures import TO_STAY, TO_TARGET
from edgesim.tuning.objectives import TuningObjective, dominates


def ranked(summary: pd.DataFrame, measure: str, is_maximised: bool = False) -> pd.DataFrame:
    """Sort the rows of a study's summary by a measure, the best first.

    For a measure to a target, rows with fewer seeds that missed it come first, and among equals the lower values. Rows
    of which a seed could not be run come last.
    """
    value = summary[measure]
    missed = "not_stayed" if measure in TO_STAY else "not_reached" if measure in TO_TARGET else None
    if missed is not None:
        value = summary[f"{measure}_bound"].fillna(value)
    order = ["left_out", *([missed] if missed else []), "_value"]
    valued = summary.assign(_value=-value if is_maximised else value)
    return valued.sort_values(order, kind="stable").drop(columns="_value")


def has_reached(summary: pd.DataFrame, objectives: Sequence[TuningObjective]) -> "pd.Series[bool]":
    """Whether all runs of each row of a summary are there and reached the target of the objectives, [rows]."""
    good = (summary["left_out"] == 0) & (summary["seeds"] > 0)
    for objective in objectives:
        missed = "not_stayed" if objective.measure in TO_STAY else "not_reached"
        good &= summary[missed] == 0 if objective.needs_target else summary[objective.measure].notna()
    return good


def front(summary: pd.DataFrame, objectives: Sequence[TuningObjective]) -> pd.DataFrame:
    """Pareto front of a summary: rows that no other row dominates, the best by the first objective first."""
    good = summary[has_reached(summary, objectives)]
    values = good[[objective.measure for objective in objectives]].to_numpy(dtype=np.float64)
    keep = np.array([not any(dominates(other, row, objectives) for other in values) for row in values], dtype=bool)
    return ranked(good[keep], objectives[0].measure, objectives[0].is_maximised)
