import numpy as np
import pytest

from edgesim.plots.training_loss import smoothed


def test_a_point_is_the_mean_of_its_stretch_over_rounds_and_seeds():
    at, loss = smoothed([np.arange(40.0), np.arange(40.0) + 2])
    assert at.tolist() == [1.5 + 2 * k for k in range(20)]
    assert loss == pytest.approx([1.5 + 2 * k for k in range(20)])
    # Rounds without updates do not count, and seeds of different length are cut to the shortest.
    at, loss = smoothed([np.array([np.nan, np.nan, 3.0, np.nan] + [1.0] * 36)])
    assert (at[0], *loss[:2]) == (3.5, 3.0, 1.0)
    at, loss = smoothed([np.ones(3), np.full(9, 3.0)])
    assert (at.tolist(), loss.tolist()) == ([1, 2, 3], [2, 2, 2])
