"""Weights of late updates: the specification's numbers, and REFL's from its definition."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgesim.config import StalenessConfig
from edgesim.learning.algorithms.staleness import refl_weights, relative_change, weights

POLYNOMIAL = StalenessConfig(weight="polynomial", a=0.5)
HINGE = StalenessConfig(weight="hinge", a=10.0, b=4)
REFL = StalenessConfig(weight="refl", beta=0.35)


def test_the_polynomial_of_fedbuff_and_the_hinge_of_fedasync():
    assert weights(POLYNOMIAL, np.array([0, 1, 3])).tolist() == pytest.approx([1.0, 2**-0.5, 0.5])
    assert weights(HINGE, np.array([0, 4, 5, 6])).tolist() == pytest.approx([1.0, 1.0, 1 / 11, 1 / 21])
    assert weights(StalenessConfig(weight="constant"), np.array([0, 7])).tolist() == [1.0, 1.0]


def test_refls_weights_are_those_of_its_worked_numbers():
    """feddance.md, T11: (s, ratio) of (0, 1), (1, 0.5) and (4, 1)."""
    found = refl_weights(np.array([0.0, 1.0, 4.0]), np.array([1.0, 0.5, 1.0]), 0.35)
    assert found.tolist() == pytest.approx([0.871242, 0.462714, 0.351242], abs=1e-6)


@pytest.mark.parametrize("fresh", [0.0, 0.9])
def test_by_refls_weights_fresh_updates_count_1_and_changes_are_over_the_largest_of_the_late_ones(fresh):
    found = weights(REFL, np.array([0, 1, 4]), np.array([fresh, 0.02, 0.04]))
    assert found.tolist() == pytest.approx([1.0, 0.462714, 0.351242], abs=1e-6)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 99))
def test_the_relative_change_is_that_of_the_mean_with_and_without_the_update(fresh_count, stale_count, seed):
    random = np.random.default_rng(seed)
    fresh, stale = random.normal(size=(fresh_count, 5)), random.normal(size=(stale_count, 5))
    mean = fresh.mean(axis=0)
    expected = [np.sum((mean - np.vstack([fresh, update]).mean(axis=0)) ** 2) / np.sum(mean**2) for update in stale]
    found = relative_change(torch.from_numpy(stale), torch.from_numpy(fresh))
    assert found.tolist() == pytest.approx(expected)


@given(st.sampled_from([POLYNOMIAL, HINGE, REFL]), st.lists(st.integers(0, 50), min_size=2, max_size=9))
def test_more_staleness_never_counts_more(config, staleness):
    s = np.array(sorted(staleness))
    found = weights(config, s, np.ones(len(s)))
    assert (np.diff(found) <= 1e-15).all()
    assert ((found > 0) & (found <= 1)).all()


def test_where_nothing_fresh_moves_the_model_every_stale_update_changes_it_alike():
    stale, nothing = torch.ones(2, 3), torch.zeros(2, 3)
    assert relative_change(stale, nothing).tolist() == [1.0, 1.0]
    assert relative_change(stale, torch.empty(0, 3)).tolist() == [1.0, 1.0]
