"""Times to a target that some runs never reached: such a run has no time, but a time that it certainly exceeds."""

from contextlib import suppress
from typing import NamedTuple

import numpy as np
import scipy

from edgesim.arrays import Floats, Integers


class Outcomes(NamedTuple):
    """A measure of [n] runs, one per seed.

    Where a run never reached its target the value is NaN, and ``bounds`` is what the run had taken by its last test;
    elsewhere bounds are NaN.
    """

    values: Floats
    bounds: Floats


def known(values: Floats) -> Outcomes:
    """Outcomes [n] none of which is censored."""
    return Outcomes(values, np.full(len(values), np.nan))


def order(first: Outcomes, second: Outcomes) -> Integers:
    """Of each of [n] pairs -1, 0 or 1: the first below, not known (or equal), and above the second.

    A run that never got there is above its partner if that got there by the time at which this one was last tested.
    """
    signs = np.sign(first.values - second.values)
    signs = np.where(first.bounds >= second.values, 1, signs)
    signs = np.where(second.bounds >= first.values, -1, signs)
    return np.asarray(np.nan_to_num(signs), dtype=np.int64)


def sign_test_p(signs: Integers) -> float:
    """Two-sided p of the paired sign test; pairs of sign 0 are left out, and without any other p is 1."""
    below, above = int((signs < 0).sum()), int((signs > 0).sum())
    return float(scipy.stats.binomtest(below, below + above).pvalue) if below + above else 1.0


def log_rank_p(first: Outcomes, second: Outcomes) -> float:
    """Two-sided p of the log-rank test between two groups of runs, which takes no notice of the pairs.

    NaN where the runs that got there did so when no other run could have.
    """
    # Imported here: the import takes a second.
    from statsmodels.duration.survfunc import survdiff

    values, bounds = np.concatenate([first.values, second.values]), np.concatenate([first.bounds, second.bounds])
    there = ~np.isnan(values)
    group = np.repeat([0, 1], [len(first.values), len(second.values)])
    with np.errstate(divide="ignore", invalid="ignore"), suppress(np.linalg.LinAlgError):
        return float(survdiff(np.where(there, values, bounds), there.astype(np.int64), group)[1])
    return np.nan
