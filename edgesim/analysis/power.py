"""How many seeds it takes to tell a difference by the paired t test."""

import numpy as np

from edgesim.analysis.statistics import LEVEL

POWER = 0.8
"""Probability with which a difference that is there is to be told."""
MOST_SEEDS = 100_000


def power(difference: float, spread: float, seeds: int, alpha: float = 1 - LEVEL) -> float:
    """Probability that the two-sided paired t test tells a difference at ``alpha``.

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
    few, many = 1, 2
    while power(difference, spread, many, alpha) < POWER:
        if many > MOST_SEEDS:
            return np.inf
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if power(difference, spread, middle, alpha) >= POWER else (middle, many)
    return float(many)
