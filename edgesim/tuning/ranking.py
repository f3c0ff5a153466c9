"""Which cells of a study are best by a measure of its summary."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from edgesim.analysis.measures import TO_STAY, TO_TARGET
from edgesim.tuning.objectives import TuningObjective, dominates


def ranked(summary: pd.DataFrame, measure: str, is_maximised: bool = False) -> pd.DataFrame:
    """Rows of a study's summary, the best first.

    Of a measure to a target those come first in which all seeds reached it, soonest first, then those of which the
    fewest did not; rows in which a seed could not be run at all come last.
    """
    value = summary[measure]
    missed = "not_stayed" if measure in TO_STAY else "not_reached" if measure in TO_TARGET else None
    if missed is not None:
        value = summary[f"{measure}_bound"].fillna(value)
    order = ["left_out", *([missed] if missed else []), "_value"]
    valued = summary.assign(_value=-value if is_maximised else value)
    return valued.sort_values(order, kind="stable").drop(columns="_value")


def has_reached(summary: pd.DataFrame, objectives: Sequence[TuningObjective]) -> "pd.Series[bool]":
    """Of each row of a summary whether all of its runs are there and reached what the objectives are to."""
    good = (summary["left_out"] == 0) & (summary["seeds"] > 0)
    for objective in objectives:
        missed = "not_stayed" if objective.measure in TO_STAY else "not_reached"
        good &= summary[missed] == 0 if objective.needs_target else summary[objective.measure].notna()
    return good


def front(summary: pd.DataFrame, objectives: Sequence[TuningObjective]) -> pd.DataFrame:
    """The rows that no other row beats in one objective without losing in another, best first by the first one."""
    good = summary[has_reached(summary, objectives)]
    values = good[[objective.measure for objective in objectives]].to_numpy(dtype=np.float64)
    keep = np.array([not any(dominates(other, one, objectives) for other in values) for one in values], dtype=bool)
    return ranked(good[keep], objectives[0].measure, objectives[0].is_maximised)
