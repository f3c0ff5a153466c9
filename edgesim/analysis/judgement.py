"""Which of several paired comparisons tell a difference, all of them judged together."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from edgesim.analysis.censored import Outcomes, log_rank_p, order, sign_test_p
from edgesim.analysis.power import seeds_needed
from edgesim.analysis.statistics import (
    Interval,
    effect,
    holm,
    holm_levels,
    mean_interval,
    paired_t_p,
    spread,
    wilcoxon_p,
)
from edgesim.arrays import Floats


class Sides(NamedTuple):
    """A measure of two choices on the same seeds: place i of both is one seed."""

    first: Outcomes
    second: Outcomes

    @property
    def differences(self) -> Floats:
        """First minus second, [n]; NaN where one run of a pair never reached the target."""
        return np.asarray(self.first.values - self.second.values)

    @property
    def never(self) -> int:
        """Number of pairs of which a run never reached the target."""
        return int(np.isnan(self.differences).sum())


def judge(compared: Sequence[Sides]) -> pd.DataFrame:
    """One row per comparison; p is corrected by Holm for all of them together.

    Columns: ``pairs`` of seeds; ``never`` (`Sides.never`); ``below`` and ``above``, the pairs of which the first is
    known to be below and above; ``difference``, the mean of first minus second, with its 95 % t interval ``low`` to
    ``high`` and, ``low_holm`` to ``high_holm``, the one at the level at which its p was judged (`holm_levels`);
    ``test``, ``p`` and ``p_holm``; ``alpha``, what p was held against.

    The test is the paired t test. Where a run never reached the target there is no difference: those columns are NaN
    and the test is the paired sign test. A comparison in which no pair differs is no test: its p is 1 and does not
    count among those corrected for. p is NaN for fewer than two pairs.
    """
    tests = ["sign" if sides.never else "paired t" for sides in compared]
    signs = [order(*sides) for sides in compared]
    p = np.array([_p(sides, test, found) for sides, test, found in zip(compared, tests, signs, strict=True)])
    same = np.array([not sides.differences.any() for sides in compared], dtype=bool)
    tested = np.where(same, np.nan, p)
    levels = holm_levels(tested)
    columns = [f"{end}{kind}" for kind in ("", "_holm") for end in ("low", "high")]
    rows = []
    for sides, level in zip(compared, np.where(np.isnan(levels), 0.95, levels), strict=True):
        plain, corrected = (_interval(sides, at) for at in (0.95, float(level)))
        ends = dict(zip(columns, (*plain[1:], *corrected[1:]), strict=True))
        rows.append({"pairs": len(sides.differences), "never": sides.never, "difference": plain.mean} | ends)
    table = pd.DataFrame(rows, columns=["pairs", "never", "difference", *columns])
    return table.assign(
        below=[int((found < 0).sum()) for found in signs],
        above=[int((found > 0).sum()) for found in signs],
        test=tests,
        p=p,
        p_holm=np.where(same, p, holm(tested)),
        alpha=1 - levels,
    )


def describe(compared: Sequence[Sides], alphas: Sequence[float], difference: float | None = None) -> pd.DataFrame:
    """What else there is to know of each comparison, one row each; NaN of differences that are not known.

    Columns: ``wilcoxon_p``; ``d_z`` and ``d_av`` (`effect`);
    ``log_rank_p``, NaN unless a run never reached the target; ``seeds_needed`` to tell ``difference``, or the seen one,
    with the seen spread, at the ``alphas`` at which the comparisons were judged.
    """
    rows = []
    for sides, alpha in zip(compared, alphas, strict=True):
        seen = sides.differences
        if sides.never or seen.size < 2:
            rows.append({"log_rank_p": log_rank_p(*sides) if sides.never else np.nan})
            continue
        d = effect(sides.first.values, sides.second.values)
        wanted = float(seen.mean()) if difference is None else difference
        rows.append(
            {"wilcoxon_p": wilcoxon_p(seen), "d_z": d.d_z, "d_av": d.d_av}
            | {"seeds_needed": seeds_needed(wanted, spread(seen), 0.05 if np.isnan(alpha) else alpha)}
        )
    names = ["wilcoxon_p", "d_z", "d_av", "log_rank_p", "seeds_needed"]
    return pd.DataFrame(rows, columns=names, dtype=np.float64)


def _p(sides: Sides, test: str, signs: np.ndarray) -> float:
    if len(signs) < 2:
        return np.nan
    return sign_test_p(signs) if test == "sign" else paired_t_p(sides.first.values, sides.second.values)


def _interval(sides: Sides, level: float) -> Interval:
    return Interval(np.nan, np.nan, np.nan) if sides.never else mean_interval(sides.differences, level=level)
