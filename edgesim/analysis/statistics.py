"""Statistics over seeds: intervals, and paired tests between two policies on the same seeds."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from edgesim.base.arrays import Floats

LEVEL = 0.95
_ENUMERATED = 13
"""Up to so many pairs SciPy works out Wilcoxon's p exactly whether there are ties or not."""


class Interval(NamedTuple):
    """A mean and its confidence interval; the ends are NaN for fewer than two values."""

    mean: float
    low: float
    high: float

    def within(self, least: float, most: float = np.inf) -> "Interval":
        """The interval cut to a quantity's range, ``least`` to ``most``, which a t interval of few values can exceed.

        The mean always stays inside.
        """
        low = np.clip(self.low, min(least, self.mean), self.mean)
        return Interval(self.mean, float(low), float(np.clip(self.high, self.mean, max(most, self.mean))))


def mean_interval(values: ArrayLike, least: int = 2, level: float = LEVEL, least_spread: float = 0.0) -> Interval:
    """Mean of [n] values with its two-sided Student t interval of n - 1 degrees of freedom at a confidence ``level``.

    Their standard deviation counts as ``least_spread`` where it is smaller. The ends are NaN for fewer than ``least``
    values, and the mean as well for none.
    """
    sample = np.asarray(values, dtype=np.float64)
    mean = float(sample.mean()) if sample.size else np.nan
    if sample.size < least:
        return Interval(mean, np.nan, np.nan)
    # Not by `scipy.stats`, whose import takes most of a second and which a study's summary needs for nothing else.
    half = float(stdtrit(sample.size - 1, 0.5 + level / 2) * spread(sample, least_spread) / np.sqrt(sample.size))
    return Interval(mean, mean - half, mean + half)


def too_few(low: Floats, high: Floats) -> str:
    """Note on t intervals of accuracies, [n], some of whose ends no accuracy can be; empty where none is such."""
    if not (np.any(np.asarray(low) < 0) or np.any(np.asarray(high) > 1)):
        return ""
    return "Too few seeds: an interval that reaches below 0 or above 1 says that the accuracy could be nearly any."


def spread(sample: Floats, least: float = 0.0) -> float:
    """Standard deviation of [n] values, two or more, or ``least`` if that is greater.

    That of equal values is exactly 0, however their mean is rounded.
    """
    return max(float(sample.std(ddof=1)) if np.ptp(sample) else 0.0, least)


def pair_by_seed(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[Floats, Floats]:
    """Values of the seeds that both mappings have, by ascending seed: two arrays [pairs]."""
    shared = sorted(first.keys() & second.keys())
    return np.array([first[seed] for seed in shared]), np.array([second[seed] for seed in shared])


def paired_t_p(first: ArrayLike, second: ArrayLike, least_spread: float = 0.0) -> float:
    """Two-sided p of the paired t test of [n] pairs; NaN for fewer than two pairs.

    The standard deviation of the differences counts as ``least_spread`` where it is smaller. Where it is 0 all the
    same, t is undefined: p is 1 if all differences are 0, and otherwise that of the exact sign test, 2^(1 - n).
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    count = differences.size
    if count < 2:
        return float("nan")
    mean, deviation = differences.mean(), spread(differences, least_spread)
    if deviation == 0.0:
        return 1.0 if mean == 0.0 else least_exact_p(count)
    return float(2 * scipy.stats.t.sf(abs(mean) / (deviation / np.sqrt(count)), count - 1))


def least_exact_p(pairs: int) -> float:
    """Least two-sided p, 2^(1 - n), that an exact test of n pairs (of signs or signed ranks) can have."""
    return 2.0 ** (1 - pairs)


def seeds_for_exact(tests: int) -> int:
    """Seeds from which `least_exact_p` is below 0.05 / ``tests``: 1 + log2(20 tests), rounded up.

    With fewer no exact test is significant among so many comparisons, whatever the runs did.
    """
    return math.ceil(1 + math.log2(tests / (1 - LEVEL)))


def wilcoxon_p(differences: ArrayLike) -> float:
    """Two-sided p of Wilcoxon's signed-rank test of [n] paired differences, as SciPy has it; NaN for fewer than two.

    Differences of zero are left out; where all are zero p is 1. Of n pairs it cannot go below 2^(1 - n).
    """
    sample = np.asarray(differences, dtype=np.float64)
    if sample.size < 2:
        return np.nan
    if not sample.any():
        return 1.0
    if sample.size > _ENUMERATED:
        return float(scipy.stats.wilcoxon(sample).pvalue)
    # SciPy's own enumeration of signs, for differences with ties, takes most of a second.
    ranks = np.sign(sample) * scipy.stats.rankdata(np.abs(sample[sample != 0]))[np.cumsum(sample != 0) - 1]
    test = scipy.stats.permutation_test(
        (ranks,), np.sum, permutation_type="samples", vectorized=True, n_resamples=np.inf
    )
    return float(test.pvalue)


class Effect(NamedTuple):
    """Cohen's d of a paired difference in its two forms, which can be far apart; NaN where no pair differs."""

    d_z: float
    """Mean difference over the standard deviation of the differences."""
    d_av: float
    """Mean difference over the root of the mean of the two variances."""


def effect(first: ArrayLike, second: ArrayLike) -> Effect:
    """Both forms of Cohen's d of [n] pairs; NaN for fewer than two, infinite where there is no spread.

    Lakens, Frontiers in Psychology 4:863, 2013.
    """
    mine, theirs = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if mine.size < 2:
        return Effect(np.nan, np.nan)
    spreads = np.array([spread(mine - theirs), np.sqrt((mine.var(ddof=1) + theirs.var(ddof=1)) / 2)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return Effect(*(float(d) for d in (mine - theirs).mean() / spreads))


def holm(p: ArrayLike) -> Floats:
    """p-values [n] corrected by Holm's step-down method for all that are not NaN; NaN (no comparison) stays NaN.

    Holm, Scandinavian Journal of Statistics 6(2), 1979.
    """
    # Imported here: the import takes a second, and a timing-only study does not need it.
    from statsmodels.stats.multitest import multipletests

    corrected = np.array(p, dtype=np.float64)
    tested = ~np.isnan(corrected)
    if tested.any():
        corrected[tested] = multipletests(corrected[tested], method="holm")[1]
    return corrected


def holm_levels(p: ArrayLike) -> Floats:
    """Confidence level of each p's own interval [n] that excludes zero where `holm` says that p is below 1 - `LEVEL`.

    The k-th smallest of m p-values is held against a = (1 - `LEVEL`) / (m - k + 1), the first one that is not below it
    and all larger ones against that one's a; the level is 1 - a, and NaN where p is NaN. Serlin, Journal of
    Experimental Education 61(4), 1993.
    """
    values = np.array(p, dtype=np.float64)
    levels = np.full(values.size, np.nan)
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    allowed = (1 - LEVEL) / np.arange(order.size, 0, -1)
    above = values[order] >= allowed
    levels[order] = (
        1 - np.where(np.logical_or.accumulate(above), allowed[above.argmax()], allowed) if order.size else []
    )
    return levels


def reading(difference: Interval, corrected_p: float, margin: float, below: str, above: str) -> str:
    """A difference in words: ``below`` or ``above`` where it is significant, ``equivalent``, or ``inconclusive``.

    ``below`` or ``above`` (by sign) if the corrected p is under 1 - `LEVEL`; else ``equivalent`` if the whole interval
    lies within ``margin`` of zero, unless all differences are equal and not 0, whose spread is unknown; empty without
    an interval, that is for fewer than two pairs.
    """
    if np.isnan(difference.low):
        return ""
    if corrected_p < 1 - LEVEL:
        return below if difference.mean < 0 else above
    within = -margin < difference.low and difference.high < margin
    is_known = difference.low < difference.high or difference.mean == 0.0
    return "equivalent" if within and is_known else "inconclusive"
