"""How many seeds a difference takes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower

from edgesim.analysis.power import POWER, power, seeds_needed


@settings(max_examples=20, deadline=None)
@given(st.floats(0.15, 2.5), st.floats(0.5, 20), st.sampled_from([0.05, 0.05 / 7, 0.05 / 42]))
def test_the_seeds_needed_are_those_of_statsmodels_rounded_up(effect, spread, alpha):
    found = seeds_needed(effect * spread, spread, alpha)
    assert found == seeds_needed(-effect * spread, spread, alpha)
    # One-sided at half the level: the other side, NaN where effects are large, is next to nothing.
    exact = float(np.squeeze(TTestPower().solve_power(effect, power=POWER, alpha=alpha / 2, alternative="larger")))
    assert found == max(2, math.ceil(exact - 1e-4))


def test_no_difference_takes_infinitely_many_seeds_no_spread_two_and_half_a_standard_deviation_34():
    """Cohen, Statistical Power Analysis, 2nd edition, table 2.4.1, for one sample: d = 0.5, two-sided 0.05, 0.8."""
    assert seeds_needed(0.5, 1.0) == 34
    assert seeds_needed(0.0, 1.0) == seeds_needed(1e-6, 1.0) == np.inf
    assert seeds_needed(1.0, 0.0) == 2
    assert math.isnan(seeds_needed(np.nan, 1.0))


@pytest.mark.parametrize(("effect", "seeds", "alpha"), [(0.8, 12, 0.05), (1.5, 5, 0.05), (1.2, 14, 0.05 / 21)])
def test_the_power_is_the_share_of_simulated_studies_that_tell_the_difference(effect, seeds, alpha):
    draws = np.random.default_rng(5).normal(3 * effect, 3.0, (40_000, seeds))
    told = stats.ttest_1samp(draws, 0, axis=1).pvalue < alpha
    expected = power(3 * effect, 3.0, seeds, alpha)
    assert told.mean() == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / len(draws)))
