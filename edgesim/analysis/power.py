"""Power of the paired t test, and the number of seeds that detects a difference."""

from bisect import bisect_left

import numpy as np

from edgesim.analysis.statistics import LEVEL

POWER = 0.8
"""Probability with which a true difference is to be detected."""
MOST_SEEDS = 100_000


def power(difference: float, spread: float, seeds: int, alpha: float = 1 - LEVEL) -> float:
    """Probability that the two-sided paired t test detects a difference at the significance level ``alpha``.

    ``spread`` is the standard deviation of the paired differences, in the unit of ``difference``.
    """
    # Imported here: the import takes a second.
    from statsmodels.stats.power import TTestPower

    effect = abs(difference) / spread
    two_sided = float(TTestPower().power(effect, seeds, alpha))
    # Far from zero the chance to err in the sign, which is next to nothing there, comes out as NaN.
    return two_sided if two_sided >= 0 else float(TTestPower().power(effect, seeds, alpha / 2, alternative="larger"))


def seeds_needed(difference: float, spread: float, alpha: float = 1 - LEVEL) -> float:
    """Least number of seeds, two or more, for a `power` of `POWER`; infinite above `MOST_SEEDS`, and for no difference.

    NaN where spread or difference are not numbers. Without any spread two seeds would do.
    """
    if np.isnan(difference) or np.isnan(spread):
        return np.nan
    if difference == 0.0:
        return np.inf
    if spread == 0.0:
        return 2.0

    def suffice(seeds: int) -> bool:
        return power(difference, spread, seeds, alpha) >= POWER

    # Doubled first: far above the seeds that suffice the power cannot be worked out.
    many = next(filter(suffice, (2**k for k in range(1, MOST_SEEDS.bit_length() + 1))), None)
    if many is None:
        return np.inf
    between = range(many // 2 + 1, many)
    return float(between.start + bisect_left(between, True, key=suffice))
