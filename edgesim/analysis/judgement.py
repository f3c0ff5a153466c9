"""Significance of several paired comparisons, all judged together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from edgesim.analysis.censored import Outcomes, common_end
from edgesim.analysis.power import seeds_needed
from edgesim.analysis.statistics import (
    LEVEL,
    Interval,
    effect,
    holm,
    holm_levels,
    mean_interval,
    paired_t_p,
    spread,
    wilcoxon_p,
)
from edgesim.base.arrays import Floats

UNLIKE_SPREADS = 3.0
"""Where one choice's spread is more than so many times the other's, the paired t test may err too often."""
EXACT = "exact sign test"
"""The test of differences that are equal and not 0."""
_ENDS = [f"{end}{kind}" for kind in ("", "_holm") for end in ("low", "high")]
_COLUMNS = ["pairs", "never", "tau", "differing", "difference", *_ENDS, "ratio", *(f"ratio_{end}" for end in _ENDS)]


@dataclass(frozen=True, eq=False)
class Sides:
    """A measure of two choices on the same seeds: place i of both is one seed.

    Where a run never reached its target, times are restricted to ``tau``, the shortest time to which all runs were
    tested, and compared as logarithms, so that a mean difference is a ratio of restricted times.
    """

    first: Outcomes
    second: Outcomes
    steps: tuple[float, float] = (0.0, 0.0)
    """Step in which the measure is known of each choice, such as 1 round; 0 where it takes any value."""

    @cached_property
    def never(self) -> int:
        """Number of pairs of which a run never reached the target."""
        return int(np.isnan(self.first.values - self.second.values).sum())

    @cached_property
    def tau(self) -> float:
        """The time to which times are restricted; NaN where all runs reached the target."""
        return common_end(self.first, self.second)

    @cached_property
    def times(self) -> tuple[Floats, Floats]:
        """Compared values in the unit of the measure, [n] each, restricted to ``tau`` if there is one."""
        return (self.first.until(self.tau), self.second.until(self.tau)) if self.never else (
            self.first.values, self.second.values)  # fmt: skip

    @cached_property
    def scaled(self) -> tuple[Floats, Floats]:
        """`times`, as logarithms where they are restricted, [n] each; NaN for restricted joules of 0."""
        if not self.never:
            return self.times
        first, second = (np.log(np.where(times > 0, times, np.nan)) for times in self.times)
        return first, second

    @cached_property
    def differences(self) -> Floats:
        """First minus second on the scale of `scaled`, [n]."""
        first, second = self.scaled
        return np.asarray(first - second)

    @cached_property
    def roundings(self) -> tuple[float, float]:
        """Standard deviation that values of each choice have at least on the scale of `scaled`, by their rounding.

        A value that is rounded to steps errs by step / sqrt(12), and the logarithm of a time t by that over t.
        """
        first, second = (
            step / math.sqrt(12) * (float(np.sqrt(np.mean(1 / times**2))) if self.never and step else 1.0)
            for step, times in zip(self.steps, self.times, strict=True)
        )
        return first, second

    @property
    def least_spread(self) -> float:
        """Standard deviation that differences have at least by `roundings`: step / sqrt(6) where steps are equal."""
        return math.hypot(*self.roundings)

    @property
    def unlike_spreads(self) -> float:
        """The greater of both choices' standard deviations over the smaller; NaN for fewer than two pairs."""
        if len(self.differences) < 2:
            return np.nan
        smaller, greater = sorted(
            spread(values, least) for values, least in zip(self.scaled, self.roundings, strict=True)
        )
        return greater / smaller if smaller else np.inf if greater else 1.0


def judge(compared: Sequence[Sides]) -> pd.DataFrame:
    """One row per comparison; p is corrected by Holm for all of them together.

    Columns: ``pairs`` of seeds; ``never`` (`Sides.never`); ``tau``; ``differing``, the pairs that differ;
    ``difference``, the mean of first minus second, with its 95 % t interval ``low`` to ``high`` and, ``low_holm`` to
    ``high_holm``, the one at the level at which its p was judged (`holm_levels`); ``ratio`` with ``ratio_low`` to
    ``ratio_high_holm``, the same for the ratio of times restricted to ``tau``; ``unlike_spreads``; ``test``, ``p`` and
    ``p_holm``; ``alpha``, what p was held against.

    The test is the paired t test: of the values, which have a ``difference``, or where a run never reached the target
    of the logarithms of restricted times, which have a ``ratio``; the columns of the other are NaN. The spread of
    differences is at least `Sides.least_spread`; where it is 0, and they are not, the test is the `EXACT` one. A
    comparison in which no pair differs is no test: its p is 1 and does not count among those corrected for. p is NaN
    for fewer than two pairs.
    """
    p = np.array([paired_t_p(*sides.scaled, sides.least_spread) for sides in compared])
    same = np.array([not sides.differences.any() for sides in compared], dtype=bool)
    tested = np.where(same, np.nan, p)
    levels = holm_levels(tested)
    rows = []
    for sides, level in zip(compared, np.where(np.isnan(levels), LEVEL, levels), strict=True):
        plain, corrected = (
            mean_interval(sides.differences, level=at, least_spread=sides.least_spread) for at in (LEVEL, float(level))
        )
        row: dict[str, float] = {"pairs": len(sides.differences), "never": sides.never, "tau": sides.tau}
        row |= {"differing": int(np.count_nonzero(sides.differences))}
        rows.append(row | (_ratio(plain, corrected) if sides.never else _difference(plain, corrected)))
    return pd.DataFrame(rows, columns=_COLUMNS).assign(
        unlike_spreads=[sides.unlike_spreads for sides in compared],
        test=[_test(sides) for sides in compared],
        p=p,
        p_holm=np.where(same, p, holm(tested)),
        alpha=1 - levels,
    )


def describe(compared: Sequence[Sides], alphas: Sequence[float], detect: Sequence[float]) -> pd.DataFrame:
    """Effect sizes, a rank test and the seeds needed of each comparison, one row each; NaN without a p.

    Columns: ``wilcoxon_p``; ``d_z`` and ``d_av`` (`effect`), of logarithms where times are restricted; ``detect``, the
    difference to detect, in the unit of the comparison, or where times are restricted the ratio that it makes of the
    second's mean; ``seeds_needed`` to detect it with the observed spread, at the ``alphas`` at which the comparisons
    were judged.
    """
    rows = []
    for sides, alpha, difference in zip(compared, alphas, detect, strict=True):
        wanted = 1 + abs(difference) / float(sides.times[1].mean()) if sides.never else difference
        if len(sides.differences) < 2 or np.isnan(sides.differences).any():
            rows.append({"detect": wanted})
            continue
        d, at = effect(*sides.scaled), 1 - LEVEL if np.isnan(alpha) else alpha
        scaled = float(np.log(wanted)) if sides.never else wanted
        needed = seeds_needed(scaled, spread(sides.differences, sides.least_spread), at)
        rows.append({"wilcoxon_p": wilcoxon_p(sides.differences), "d_z": d.d_z, "d_av": d.d_av, "detect": wanted}
                    | {"seeds_needed": needed})  # fmt: skip
    return pd.DataFrame(rows, columns=["wilcoxon_p", "d_z", "d_av", "detect", "seeds_needed"], dtype=np.float64)


def _test(sides: Sides) -> str:
    """Name of the test behind p."""
    differences = sides.differences
    # The paired t test needs a spread, which differences lack that are all equal.
    if len(differences) > 1 and differences.any() and spread(differences, sides.least_spread) == 0.0:
        return EXACT
    return "paired t of logarithms" if sides.never else "paired t"


def _difference(plain: Interval, corrected: Interval) -> dict[str, float]:
    return {"difference": plain.mean} | dict(zip(_ENDS, (*plain[1:], *corrected[1:]), strict=True))


def _ratio(plain: Interval, corrected: Interval) -> dict[str, float]:
    names = ("ratio", *(f"ratio_{end}" for end in _ENDS))
    # Of two pairs, at the level of many comparisons, an interval's end can lie above all floats: it is infinite.
    with np.errstate(over="ignore"):
        return dict(zip(names, np.exp((*plain, *corrected[1:])).tolist(), strict=True))
