"""Several comparisons judged together."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from edgesim.analysis.censored import Outcomes, known
from edgesim.analysis.judgement import Sides, describe, judge
from edgesim.analysis.power import seeds_needed
from edgesim.analysis.statistics import holm_levels

RANDOM = np.random.default_rng(8)


def sides(first, second) -> Sides:
    return Sides(known(np.array(first, dtype=float)), known(np.array(second, dtype=float)))


def never(first, second) -> Sides:
    """NaN stands for a run that never got there in 60 rounds."""
    made = []
    for side in (first, second):
        values = np.array(side, dtype=float)
        made.append(Outcomes(values, np.where(np.isnan(values), 60.0, np.nan)))
    return Sides(*made)


def test_p_is_scipys_and_corrected_by_holm_over_all_comparisons_of_both_tests():
    some = [sides(RANDOM.normal(i, 1, 6), RANDOM.normal(0, 1, 6)) for i in range(4)]
    late = never([30, 35, np.nan, 40, np.nan, 50], [20, 22, 25, 30, 31, 33])
    table = judge([*some, late])
    p = [stats.ttest_rel(one.first.values, one.second.values).pvalue for one in some]
    restricted = np.log([[30, 35, 60, 40, 60, 50], [20, 22, 25, 30, 31, 33]])
    p.append(stats.ttest_rel(*restricted).pvalue)
    assert table["p"].tolist() == pytest.approx(p)
    assert table["p_holm"].tolist() == pytest.approx(multipletests(p, method="holm")[1].tolist())
    assert table["test"].tolist() == ["paired t"] * 4 + ["paired t of logarithms"]
    assert (table["alpha"].to_numpy() == 1 - holm_levels(p)).all()


def test_a_corrected_interval_excludes_zero_exactly_where_the_corrected_p_tells_the_difference():
    table = judge([sides(RANDOM.normal(shift, 1, 7), RANDOM.normal(0, 1, 7)) for shift in np.linspace(0, 4, 12)])
    told = table["p_holm"] < 0.05
    assert 0 < told.sum() < len(told)
    assert ((table["low_holm"] > 0) | (table["high_holm"] < 0)).tolist() == told.tolist()
    assert (table["high_holm"] - table["low_holm"] >= table["high"] - table["low"]).all()


def test_the_last_round_of_a_run_that_never_got_there_is_no_number():
    row = judge([never([30, np.nan, 40], [20, 25, 30])]).iloc[0]
    assert (row["pairs"], row["never"], row["differing"], row["tau"]) == (3, 1, 3, 60)
    assert row[["difference", "low", "high", "low_holm", "high_holm"]].isna().all()
    logarithms = np.log([30 / 20, 60 / 25, 40 / 30])
    ends = stats.t.interval(0.95, 2, logarithms.mean(), stats.sem(logarithms))
    assert row[["ratio", "ratio_low", "ratio_high"]].tolist() == pytest.approx(np.exp([logarithms.mean(), *ends]))
    reached = judge([sides([30, 45, 40], [20, 25, 30])]).iloc[0]
    assert reached[["tau", "ratio", "ratio_low", "ratio_high_holm"]].isna().all()


SLOW = [11.0, 12.0, 10.0, 12.0]


@pytest.mark.parametrize(
    ("theirs", "end", "p"),
    [([*SLOW, 11.0], 30, 1.6e-6), ([*SLOW, np.nan], 30, 0.0020), ([*SLOW, np.nan], 120, 0.0171),
     ([np.nan] * 5, 30, 1.4e-5)],
)  # fmt: skip
def test_runs_that_never_get_there_do_not_hide_a_difference_that_all_seeds_have(theirs, end, p):
    """Rounds 2, 3, 2, 3, 2 against some 11, of which one never gets there, or none: by a sign test 0.0625 each time."""
    values = np.array(theirs)
    late = Outcomes(values, np.where(np.isnan(values), end, np.nan))
    row = judge([Sides(known(np.array([2.0, 3.0, 2.0, 3.0, 2.0])), late, (1.0, 1.0))]).iloc[0]
    assert row["p"] == pytest.approx(p, rel=0.03)
    assert np.isnan(row["ratio"]) if row["never"] == 0 else row["ratio_high"] < 1


def test_of_joules_that_are_zero_and_censored_there_is_no_ratio():
    row = judge([never([0.0, 10, 20], [20, np.nan, 30])]).iloc[0]
    assert np.isnan(row["p"])
    assert np.isnan(row["p_holm"])


def test_differences_of_whole_steps_spread_as_much_as_two_rounded_values():
    """The standard deviation of a difference of two numbers, each rounded to whole ones, is 1 / sqrt(6)."""
    draws = np.random.default_rng(4).uniform(0, 50, (2, 200_000))
    rounding = draws - np.round(draws)
    first, second = known(np.array([12.0, 12.0, 12.0])), known(np.array([11.0, 11.0, 11.0]))
    assert Sides(first, second, (1.0, 1.0)).least_spread == pytest.approx((rounding[0] - rounding[1]).std(), rel=0.01)
    row = judge([Sides(first, second, (1.0, 1.0))]).iloc[0]
    half = stats.t.ppf(0.975, 2) / np.sqrt(6) / np.sqrt(3)
    assert (row["low"], row["high"]) == pytest.approx((1 - half, 1 + half))
    assert row["p"] == pytest.approx(2 * stats.t.sf(np.sqrt(3) * np.sqrt(6), 2))
    times = np.array([12.0, 13.0, np.nan]), np.array([11.0, 14.0, 12.0])
    late = Sides(Outcomes(times[0], np.array([np.nan, np.nan, 2_000.0])), known(times[1]), (1.0, 1.0))
    # Of the logarithm of a time that is known to a round, one of 2,000 rounds is as good as certain.
    variance = sum(np.log(t + rounding[0]).var() for t in (12.0, 13.0, 11.0, 14.0, 12.0)) / 3
    assert late.least_spread == pytest.approx(np.sqrt(variance), rel=0.02)


def test_how_unlike_the_spreads_of_two_choices_are():
    wide, narrow = [1.0, 9.0, 5.0, 30.0], [5.0, 5.5, 4.5, 5.0]
    row = judge([sides(wide, narrow)]).iloc[0]
    assert row["unlike_spreads"] == pytest.approx(np.std(wide, ddof=1) / np.std(narrow, ddof=1))
    assert judge([sides(narrow, wide)])["unlike_spreads"][0] == row["unlike_spreads"]
    assert judge([sides(narrow, [5.0] * 4)])["unlike_spreads"][0] == np.inf
    # Equal rounds are equal up to their rounding, 1 / sqrt(12).
    rounds = Sides(known(np.array([4.0, 6.0, 5.0])), known(np.array([5.0, 5.0, 5.0])), (1.0, 1.0))
    assert judge([rounds])["unlike_spreads"][0] == pytest.approx(np.sqrt(12))


def test_a_comparison_in_which_no_pair_differs_is_told_level_and_costs_the_others_nothing():
    other = sides([3.0, 4.0, 5.5], [1.0, 2.0, 3.0])
    alone, beside = judge([other]), judge([other, sides([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])])
    assert beside["p_holm"].tolist() == [alone["p_holm"][0], 1.0]
    assert beside["p_holm"][0] == beside["p"][0]


def test_of_one_pair_or_none_nothing_is_judged():
    table = judge([sides([1.0], [2.0])])
    assert math.isnan(table["p"][0])
    assert math.isnan(table["p_holm"][0])
    assert judge([]).empty


def test_seeds_are_counted_at_the_level_at_which_a_comparison_was_judged():
    some = sides([1.0, 2.0, 4.0, 3.0], [0.0, 2.5, 3.0, 1.0])
    strict, easy = describe([some, some], [0.05 / 20, 0.05], [1.0, 1.0])["seeds_needed"]
    assert strict > easy
    assert describe([some], [0.05], [100.0])["seeds_needed"][0] == 2


def test_the_seeds_needed_are_of_the_difference_named_whatever_was_seen():
    noise = np.array([0.3, -0.4, 0.5, -0.2])
    found = describe([sides(noise + shift, [0.0] * 4) for shift in (0.0, 1.0, 9.0)], [0.05] * 3, [0.5] * 3)
    assert found["detect"].tolist() == [0.5] * 3
    assert set(found["seeds_needed"]) == {seeds_needed(0.5, float(noise.std(ddof=1)))}
    late = never([30, np.nan, 40], [20, 25, 30])
    row = describe([late], [0.05], [2.5]).iloc[0]
    # A tenth of the mean of 20, 25 and 30 as a logarithm.
    spread = np.log([30 / 20, 60 / 25, 40 / 30]).std(ddof=1)
    assert row["seeds_needed"] == seeds_needed(np.log(1.1), float(spread))


def test_each_side_is_rounded_to_its_own_step():
    """One choice is tested every round and the other every tenth."""
    draws = np.random.default_rng(4).uniform(0, 500, (2, 200_000))
    first, second = known(np.array([12.0, 12.0, 12.0])), known(np.array([20.0, 20.0, 20.0]))
    errors = draws[0] - np.round(draws[0]), draws[1] - 10 * np.round(draws[1] / 10)
    both = Sides(first, second, (1.0, 10.0))
    assert both.least_spread == pytest.approx((errors[0] - errors[1]).std(), rel=0.01)
    assert both.unlike_spreads == pytest.approx(10)


def test_an_interval_of_a_ratio_that_no_float_holds_ends_at_infinity():
    """Two seeds among 42 comparisons, one run never there."""
    cut = Sides(Outcomes(np.array([2.0, np.nan]), np.array([np.nan, 30.0])), known(np.array([9.0, 3.0])), (1.0, 1.0))
    noise = np.random.default_rng(0).normal(size=(41, 2, 2))
    with warnings.catch_warnings(action="error"):
        row = judge([cut, *(sides(*of) for of in noise)]).iloc[0]
    assert (row["ratio_low_holm"], row["ratio_high_holm"]) == (0.0, np.inf)
    assert row["ratio"] > 0


def test_the_p_of_equal_differences_is_named_as_of_an_exact_test():
    equal, none = sides([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]), sides([1.0, 2.0], [1.0, 2.0])
    stepped = Sides(equal.first, equal.second, (1.0, 1.0))
    table = judge([equal, none, stepped, sides([2.0], [1.0])])
    assert table["test"].tolist() == ["exact sign test", "paired t", "paired t", "paired t"]
    assert table["p"][0] == 0.25
