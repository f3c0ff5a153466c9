import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance_nd

from edgesim.analysis.skew import earth_movers_distances, holdings, skew

COUNTS = st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3).filter(any), min_size=1, max_size=8)


def devices(*frames):
    rows = [(device, frame, row) for frame, counts in enumerate(frames) for device, row in enumerate(counts)]
    return pd.DataFrame(rows, columns=["device", "frame", "class_counts"])


@settings(max_examples=40)
@given(COUNTS)
def test_the_distance_is_twice_that_of_optimal_transport_between_classes_one_apart(counts):
    counts = np.array(counts)
    # Points of a simplex with edges of length one: moving a sample from any class to any other costs 1.
    corners = np.eye(3) / np.sqrt(2)
    everyone = counts.sum(axis=0)
    expected = [2 * wasserstein_distance_nd(corners, corners, row, everyone) for row in counts]
    assert earth_movers_distances(counts) == pytest.approx(expected, abs=1e-6)


def test_a_worked_example():
    # Mixes (1, 0) and (0.25, 0.75); all samples: (4 + 1, 3) / 8 = (0.625, 0.375).
    table = skew(np.array([[4, 0], [1, 3]]))
    assert table.loc["emd"].tolist() == pytest.approx([0.75, 0.75, 0.75, 0.75])
    assert table.loc["classes"].tolist() == [1, 1.5, 1.5, 2]
    assert table.loc["samples"].tolist() == [4, 4, 4, 4]


def test_equal_neighbouring_frames_are_one_holding():
    one, other = [[3, 0], [0, 3]], [[3, 0], [1, 2]]
    found = holdings(devices(one, one, other, one))
    assert [holding.when for holding in found] == ["0-1", "2", "3"]
    assert found[1].counts.tolist() == other
    assert holdings(devices([None, None])) == holdings(devices([[], []])) == []
