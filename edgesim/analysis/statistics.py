"""Statistics over seeds: intervals, and paired tests between two policies on the same seeds."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]

LEVEL = 0.95


class Interval(NamedTuple):
    """A mean and its confidence interval; the ends are NaN for fewer than two values."""

    mean: float
    low: float
    high: float

    def within(self, least: float, most: float = np.inf) -> "Interval":
        """The interval without what lies outside of the quantity's range, where that of few values can reach."""
        low = np.clip(self.low, min(least, self.mean), self.mean)
        return Interval(self.mean, float(low), float(np.clip(self.high, self.mean, max(most, self.mean))))


def mean_interval(values: ArrayLike, level: float = LEVEL) -> Interval:
    """Mean of [n] values with its two-sided Student t interval of n - 1 degrees of freedom."""
    sample = np.asarray(values, dtype=np.float64)
    if sample.size == 0:
        return Interval(np.nan, np.nan, np.nan)
    mean = float(sample.mean())
    if sample.size == 1:
        return Interval(mean, np.nan, np.nan)
    half = float(stats.t.ppf(0.5 + level / 2, sample.size - 1) * sample.std(ddof=1) / np.sqrt(sample.size))
    return Interval(mean, mean - half, mean + half)


def pair_by_seed(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[Floats, Floats]:
    """Values of the seeds that both have, by ascending seed: two arrays [pairs]."""
    shared = sorted(first.keys() & second.keys())
    return np.array([first[seed] for seed in shared]), np.array([second[seed] for seed in shared])


def paired_t_p(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided p of the paired t test of [n] pairs; NaN for fewer than two pairs.

    Differences without any spread give p = 1 when they are zero and p = 0 otherwise (t is infinite).
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    count = differences.size
    if count < 2:
        return float("nan")
    mean, spread = differences.mean(), differences.std(ddof=1)
    if spread == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return float(2 * stats.t.sf(abs(mean) / (spread / np.sqrt(count)), count - 1))


def wilcoxon_p(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided exact p of Wilcoxon's signed-rank test of [n] pairs; NaN without pairs.

    Zero differences are left out (p = 1 when all are zero) and ties share their mean rank. The null
    distribution is that of the observed ranks under all 2^n signs, so it is exact with ties too (rounds tie
    often). Wilcoxon, Biometrics Bulletin 1(6), 1945.
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if differences.size == 0:
        return float("nan")
    differences = differences[differences != 0.0]
    if differences.size == 0:
        return 1.0
    # Mean ranks are multiples of one half: doubled, the rank sum is an integer index.
    doubled = np.rint(2 * stats.rankdata(np.abs(differences))).astype(np.int64)
    distribution = np.ones(1)
    for rank in doubled:
        distribution = (np.pad(distribution, (0, rank)) + np.pad(distribution, (rank, 0))) / 2
    positive = int(doubled[differences > 0].sum())
    tail = min(distribution[: positive + 1].sum(), distribution[positive:].sum())
    return float(min(1.0, 2 * tail))


def wilcoxon_floor(pairs: int) -> float:
    """Least two-sided p that Wilcoxon's signed-rank test can give with that many pairs: 2^(1 - pairs)."""
    return 2.0 ** (1 - pairs)
