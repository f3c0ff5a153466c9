from collections import Counter

import numpy as np
import pytest
from candidates import PlainKnowledge, view_of

from edgesim.selection.pure_drift import PureDrift
from edgesim.selection.shares import share_changes
from edgesim.selection.view import Options


@pytest.fixture
def drifted():
    """Device 0 untouched, 1 swapped half of one class for a new one, 2 a quarter, 3 the same as 1."""
    return PlainKnowledge(
        counts=np.array([[30, 30, 0], [30, 0, 30], [60, 20, 0], [0, 30, 30]]),
        previous=np.array([[10, 10, 0], [60, 0, 0], [40, 40, 0], [0, 60, 0]]),
    )


def test_swapping_half_of_a_class_for_a_new_one_is_a_drift_of_exactly_one(drifted):
    """Oracle T10 of the specification; an untouched device has drift 0 whatever its number of samples."""
    assert share_changes(view_of(drifted)).sum(axis=1).tolist() == [0.0, 1.0, 0.5, 1.0]


def test_pure_drift_goes_by_falling_drift_and_shuffles_ties(drifted):
    policy, rounds = PureDrift(Options(), 4, 3), 300
    seen = Counter(tuple(next(policy.choose(view_of(drifted, round=k))).tolist()) for k in range(1, rounds + 1))
    assert set(seen) == {(1, 3, 2, 0), (3, 1, 2, 0)}
    assert abs(seen[1, 3, 2, 0] - rounds / 2) < 4 * np.sqrt(rounds / 4)
