import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edgesim.analysis.statistics import (
    mean_interval,
    pair_by_seed,
    paired_t_p,
    wilcoxon_floor,
    wilcoxon_p,
)

# Rounds of Random, FedTeddi and Fed-CBS in a prototype on digits, 5 seeds.
RANDOM, FEDTEDDI, FEDCBS = [33, 26, 30, 42, 37], [22, 23, 20, 20, 14], [19, 18, 13, 17, 18]


def test_the_interval_of_five_values_uses_the_tabulated_t_quantile():
    # Mean 3, variance 2.5, and t(0.975, 4 degrees of freedom) = 2.776445 in any table.
    mean, low, high = mean_interval([1, 2, 3, 4, 5])
    half = 2.776445105 * math.sqrt(2.5 / 5)
    assert (mean, low, high) == pytest.approx((3.0, 3 - half, 3 + half))


def test_one_value_has_a_mean_but_no_interval_and_none_has_neither():
    assert mean_interval([0.7])[0] == 0.7
    assert all(math.isnan(end) for end in mean_interval([0.7])[1:])
    assert all(math.isnan(number) for number in mean_interval([]))


@given(st.lists(st.floats(0, 1), max_size=6))
def test_an_interval_within_a_range_is_the_overlap_of_both_and_holds_the_mean(values):
    whole, cut = mean_interval(values), mean_interval(values).within(0, 1)
    assert np.array_equal(cut.mean, whole.mean, equal_nan=True)
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


def test_paired_t_without_spread_is_certain_either_way_and_undefined_for_one_pair():
    assert paired_t_p([0.5, 0.75], [0.5, 0.75]) == 1.0
    assert paired_t_p([0.75, 1.0], [0.5, 0.75]) == 0.0
    assert math.isnan(paired_t_p([0.5], [0.4]))


def test_five_seeds_all_better_reach_the_wilcoxon_floor_of_one_sixteenth():
    assert wilcoxon_p(FEDTEDDI, RANDOM) == wilcoxon_floor(5) == 0.0625
    assert wilcoxon_p(FEDCBS, RANDOM) == 0.0625


def test_equal_rounds_on_every_seed_give_a_wilcoxon_p_of_one():
    assert wilcoxon_p(RANDOM, RANDOM) == 1.0


def test_wilcoxon_without_any_pair_is_undefined():
    assert math.isnan(wilcoxon_p([], []))


@settings(max_examples=50)
@given(st.lists(st.integers(-30, 30).filter(bool), min_size=1, max_size=10, unique_by=abs))
def test_wilcoxon_agrees_with_scipys_exact_test_when_nothing_ties(differences):
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert wilcoxon_p(differences, np.zeros(len(differences))) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=50)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8).filter(any))
def test_wilcoxon_with_ties_and_zeros_equals_the_count_over_all_signs(differences):
    kept = [d for d in differences if d]
    ranks = stats.rankdata(np.abs(kept))
    seen = sum(rank for rank, d in zip(ranks, kept, strict=True) if d > 0)
    sums = np.array([np.dot(ranks, signs) for signs in product((0, 1), repeat=len(kept))])
    expected = min(1.0, 2 * min(np.mean(sums <= seen), np.mean(sums >= seen)))
    assert wilcoxon_p(differences, [0] * len(differences)) == pytest.approx(expected, rel=1e-12)
