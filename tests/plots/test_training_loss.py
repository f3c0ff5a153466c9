import numpy as np
import pytest

from edgesim.plots.training_loss import smoothed


def test_a_point_is_the_mean_of_its_stretch_over_rounds_and_seeds():
    at, loss = smoothed([np.arange(40.0), np.arange(40.0) + 2])
    assert at.tolist() == [1.5 + 2 * k for k in range(20)]
    assert loss == pytest.approx([1.5 + 2 * k for k in range(20)])


def test_rounds_without_updates_do_not_count():
    losses = np.array([np.nan, np.nan, 3.0, np.nan] + [1.0] * 36)
    at, loss = smoothed([losses])
    assert at[0] == 3.5
    assert loss[:2].tolist() == [3.0, 1.0]


def test_seeds_of_different_length_are_cut_to_the_shortest():
    at, loss = smoothed([np.ones(3), np.full(9, 3.0)])
    assert (at.tolist(), loss.tolist()) == ([1, 2, 3], [2, 2, 2])
