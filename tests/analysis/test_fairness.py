import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.analysis.fairness import gini, lorenz, participations


def test_devices_that_never_took_part_count_too():
    updates = pd.DataFrame({"device": [2, 0, 2]})
    assert participations(updates, pd.DataFrame({"device": [0, 1, 2, 3, 0, 1, 2, 3]})).tolist() == [1, 0, 2, 0]


def test_the_curve_and_the_coefficient_at_both_ends():
    assert lorenz(np.full(4, 3)).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert gini(np.full(4, 3)) == pytest.approx(0)
    assert lorenz(np.array([0, 5, 0, 0])).tolist() == [0, 0, 0, 0, 1]
    assert gini(np.array([0, 5, 0, 0])) == pytest.approx(0.75)
    assert gini(np.zeros(4, dtype=int)) == 0


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20).filter(any))
def test_the_coefficient_is_half_the_relative_mean_difference(counts):
    count = len(counts)
    expected = sum(abs(x - y) for x in counts for y in counts) / (2 * count * sum(counts))
    assert gini(np.array(counts)) == pytest.approx(expected)
