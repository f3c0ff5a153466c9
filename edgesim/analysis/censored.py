"""Censored times to a target: a run that never reached it has no time, only a lower bound of it."""

from typing import NamedTuple

import numpy as np

from edgesim.base.arrays import Floats


class Outcomes(NamedTuple):
    """A measure of [n] runs, one per seed.

    Where a run never reached its target the value is NaN, and ``bounds`` is what the run had taken by its last test;
    elsewhere bounds are NaN.
    """

    values: Floats
    bounds: Floats

    def until(self, tau: float) -> Floats:
        """Times [n] restricted to ``tau``, which is min(t, tau), with ``tau`` for a run that never got there.

        They are known where ``tau`` is at most every bound. Royston and Parmar, BMC Medical Research Methodology
        13:152, 2013.
        """
        return np.asarray(np.fmin(self.values, tau))


def known(values: Floats) -> Outcomes:
    """Outcomes without censoring, of values [n]."""
    return Outcomes(values, np.full(len(values), np.nan))


def common_end(first: Outcomes, second: Outcomes) -> float:
    """The shortest time to which all runs that never reached the target were tested; NaN where all reached it.

    It is the greatest ``tau`` for which `Outcomes.until` is known of all runs, since a run that reached the target has
    a known time.
    """
    bounds = np.concatenate([first.bounds, second.bounds])
    return float(np.nanmin(bounds)) if not np.isnan(bounds).all() else np.nan
