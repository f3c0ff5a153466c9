import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from edgesim.analysis.statistics import (
    Interval,
    effect,
    holm,
    holm_levels,
    least_exact_p,
    mean_interval,
    pair_by_seed,
    paired_t_p,
    reading,
    seeds_for_exact,
    wilcoxon_p,
)


@given(st.lists(st.floats(0, 1), max_size=6))
def test_an_interval_within_a_range_is_the_overlap_of_both_and_holds_the_mean(values):
    whole, cut = mean_interval(values), mean_interval(values).within(0, 1)
    assert np.array_equal(cut.mean, whole.mean, equal_nan=True)
    assert whole.mean == pytest.approx(np.mean(values) if values else np.nan, nan_ok=True)
    if len(values) < 2:
        assert math.isnan(cut.low)
        assert math.isnan(cut.high)
    else:
        assert cut.low <= cut.mean <= cut.high
        assert (cut.low, cut.high) == pytest.approx((max(whole.low, 0.0), min(whole.high, 1.0)))


def test_pairs_are_the_seeds_that_both_have_in_ascending_order():
    first, second = pair_by_seed({3: 0.3, 1: 0.1, 2: 0.2}, {1: 1.0, 3: 3.0, 9: 9.0})
    assert first.tolist() == [0.1, 0.3]
    assert second.tolist() == [1.0, 3.0]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=12))
def test_the_paired_t_test_agrees_with_scipy_wherever_the_differences_spread(pairs):
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    if np.std(first - second) > 1e-6:
        assert paired_t_p(first, second) == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=1e-9)


def test_paired_t_without_spread_is_the_sign_tests_p_and_undefined_for_one_pair():
    assert paired_t_p([0.5, 0.75], [0.5, 0.75]) == 1.0
    assert paired_t_p([0.75, 1.0], [0.5, 0.75]) == stats.binomtest(2, 2).pvalue == 0.5
    assert paired_t_p([9, 9, 9, 9, 9], [7, 7, 7, 7, 7]) == stats.binomtest(5, 5).pvalue
    assert math.isnan(paired_t_p([0.5], [0.4]))


def test_holm_multiplies_the_least_p_by_all_comparisons_and_never_lets_a_larger_one_pass_below_it():
    # By hand: 0.01 x 4, 0.02 x 3, 0.03 x 2 = 0.06, 0.5 x 1; those not made do not count.
    assert holm([0.5, 0.01, np.nan, 0.03, 0.02]) == pytest.approx([0.5, 0.04, np.nan, 0.06, 0.06], nan_ok=True)
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert np.isnan(holm([np.nan])).all()


def test_the_level_of_an_interval_is_that_of_holms_step_and_no_larger_p_gets_an_easier_one():
    """Of three, 0.001 is held against 0.05 / 3, 0.03 against 0.05 / 2, and 0.04 no longer against 0.05."""
    levels = holm_levels([0.04, math.nan, 0.001, 0.03])
    assert levels[[0, 2, 3]] == pytest.approx([0.975, 1 - 0.05 / 3, 0.975])
    assert math.isnan(levels[1])
    assert holm_levels([0.001, 0.02, 0.04]) == pytest.approx([1 - 0.05 / 3, 0.975, 0.95])
    assert holm_levels([math.nan]).tolist() == pytest.approx([math.nan], nan_ok=True)
    assert holm_levels([]).size == 0


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p):
    """Largest number of ordered p-values each of which is below alpha over those that are left."""
    alpha, ordered = 0.05, sorted(p)
    rejected = next((k for k, value in enumerate(ordered) if value * (len(p) - k) > alpha), len(p))
    # statsmodels collects garbage in each call, which takes a third of a second beside torch.
    with mock.patch("gc.collect"):
        assert (holm(p) <= alpha).sum() == rejected


@pytest.mark.parametrize(
    ("interval", "p", "expected"),
    [
        (Interval(-3, -5, -1), 0.01, "fewer"),
        (Interval(3, 1, 5), 0.01, "more"),
        (Interval(3, 1, 5), 0.06, "inconclusive"),
        (Interval(0.5, -0.9, 1.9), 0.4, "equivalent"),
        (Interval(0.5, -1.1, 2.1), 0.4, "inconclusive"),
        (Interval(-0.5, -2.1, 1.1), 0.4, "inconclusive"),
        (Interval(0.5, 0.1, 0.9), 0.01, "more"),
        (Interval(0.5, np.nan, np.nan), np.nan, ""),
    ],
)
def test_choices_are_equivalent_only_where_their_whole_interval_lies_within_the_margin(interval, p, expected):
    assert reading(interval, p, 2.0, "fewer", "more") == expected


FEDAVG, AFL = np.array([79.1, 80.2, 78.8, 79.9, 79.0]), np.array([84.2, 85.1, 84.9, 84.0, 85.3])


def test_the_pairs_of_the_afl_page_have_its_statistics_to_1e_9():
    """The made pairs of AFL's specification, T13."""
    differences = AFL - FEDAVG
    found = [differences.mean(), differences.std(ddof=1), paired_t_p(AFL, FEDAVG), *effect(AFL, FEDAVG)]
    expected = [5.3, 0.9055385138, 1.9679676433e-4, 5.8528708820, 8.9586351001]
    assert found == pytest.approx(expected, abs=1e-9)
    assert found[2] == pytest.approx(expected[2], rel=1e-9)
    assert mean_interval(differences)[1:] == pytest.approx((4.17562543, 6.42437457), abs=5e-9)
    assert wilcoxon_p(differences) == 0.0625
    assert holm([0.001, 0.012, 0.03, 0.04]).tolist() == pytest.approx([0.004, 0.036, 0.06, 0.06], abs=1e-9)


SAMPLES = st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=9)
TIED = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=8)


@settings(max_examples=25, deadline=None)
@given(st.one_of(SAMPLES, TIED))
def test_wilcoxons_p_is_scipys_exact_one_with_and_without_ties(sample):
    """Ranks whose differences SciPy takes for ties by rounding are left to it."""
    sizes = np.sort(np.abs(sample))
    if np.any(sample) and not np.any((np.diff(sizes) > 0) & (np.diff(sizes) < 1e-6)):
        assert wilcoxon_p(sample) == pytest.approx(stats.wilcoxon(sample).pvalue, rel=1e-9)


def test_wilcoxon_of_more_pairs_is_scipys_too_and_of_equal_ones_or_of_one_it_has_its_own_answer():
    many = np.random.default_rng(3).integers(-9, 12, 30).astype(float)
    assert wilcoxon_p(many) == stats.wilcoxon(many).pvalue
    assert wilcoxon_p([0.0, 0.0, 0.0]) == 1.0
    assert math.isnan(wilcoxon_p([2.0]))


@given(SAMPLES, st.floats(0.1, 3))
def test_d_z_is_t_over_the_root_of_n_and_d_av_that_of_statsmodels_for_equal_groups(sample, factor):
    """Statsmodels pools two groups of equal size by the root mean of their variances."""
    first = np.array(sample)
    second = factor * first[::-1] + np.arange(len(sample))
    found, count = effect(first, second), len(sample)
    if np.std(first - second) > 1e-3 and np.std(first) > 1e-3:
        assert found.d_z == pytest.approx(stats.ttest_rel(first, second).statistic / np.sqrt(count), rel=1e-6)
        pooled = CompareMeans(DescrStatsW(first), DescrStatsW(second)).std_meandiff_pooledvar * np.sqrt(count / 2)
        assert found.d_av == pytest.approx((first.mean() - second.mean()) / pooled, rel=1e-6)


def test_effects_without_spread_are_infinite_and_of_equal_pairs_undefined():
    assert effect([2.0, 3.0], [1.0, 2.0]).d_z == np.inf
    assert math.isnan(effect([2.0, 3.0], [2.0, 3.0]).d_z)
    assert all(math.isnan(d) for d in effect([2.0], [1.0]))


@pytest.mark.parametrize(("tests", "seeds"), [(1, 6), (7, 9), (42, 11)])
def test_so_many_seeds_an_exact_test_takes_to_be_significant_at_all(tests, seeds):
    """The one-sided sample of the greatest order, doubled: the least p of a sign test and of Wilcoxon's."""
    assert seeds_for_exact(tests) == seeds
    for count in (seeds - 1, seeds):
        assert least_exact_p(count) == pytest.approx(stats.binomtest(count, count).pvalue)
        assert least_exact_p(count) == pytest.approx(wilcoxon_p(np.arange(1, count + 1)))
    assert tests * least_exact_p(seeds) < 0.05 <= tests * least_exact_p(seeds - 1)


def test_a_spread_is_at_least_what_rounding_makes_of_it():
    wide = [1.0, 5.0, 9.0]
    assert mean_interval(wide, least_spread=0.5) == mean_interval(wide)
    equal = mean_interval([3.0, 3.0, 3.0], least_spread=0.5)
    assert (equal.low, equal.high) == pytest.approx(stats.t.interval(0.95, 2, 3.0, 0.5 / np.sqrt(3)))
    assert paired_t_p([3.0] * 3, [2.0] * 3, 0.5) == pytest.approx(2 * stats.t.sf(np.sqrt(3) / 0.5, 2))
    assert paired_t_p([3.0] * 3, [2.0] * 3) == 0.25


def test_equal_values_have_no_spread_whatever_their_mean_is_rounded_to():
    """The mean of five times 0.247 is not 0.247, and so NumPy's standard deviation is 3e-17."""
    equal = [0.247] * 5
    assert np.std(equal, ddof=1) > 0
    assert mean_interval(equal)[1:] == pytest.approx((0.247, 0.247), rel=1e-15)
    assert mean_interval(equal).low == mean_interval(equal).high
    assert paired_t_p(equal, np.zeros(5)) == 2**-4
    assert effect(equal, np.zeros(5)).d_z == np.inf
