"""FedStg's weights: the oracles T1, T2 and T10 of its page."""

import numpy as np
import pytest
from arriving import arrive
from eight_weights import ROUNDS, START, THREE
from hypothesis import given
from hypothesis import strategies as st
from quadratics import Play

from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.fedstg import FedStg, rarity
from edgesim.learning.algorithms.records import Sizes
from edgesim.streams import Streams

T1 = np.array([[1, 4, 0], [0, 2, 9], [0, 1, 0]])
"""A holds classes 0 and 1, B 1 and 2, C 1 alone."""


def weights(samples, class_counts, **options):
    algorithm = FedStg.Server(FedStg.Options(**options), Sizes(32.0, 1, 3), Streams(0))
    return algorithm.weigh(arrive(samples=samples, class_counts=np.array(class_counts)))


OF_EIGHT = np.repeat([[0, 1], [1, 0]], [1, 7], axis=0)
"""Of eight devices one holds a class that nobody else holds."""


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # T1: rel = (3, 1, 3), b = 2, 2, 1.
        (T1, [1.25, 1.25, 1]),
        # T2: b = 8 and 1 + .25 * 7 = 2.75, which is bounded by one and a half.
        (OF_EIGHT, [1.5] + 7 * [1 + 0.25 * (8 / 7 - 1)]),
        # T2: with the same classes everywhere, and without any, nobody is rare.
        (np.full((5, 3), 7), [1] * 5),
        (np.zeros((2, 0), dtype=np.int64), [1, 1]),
        (np.zeros((2, 3), dtype=np.int64), [1, 1]),
    ],
)
def test_devices_with_classes_that_few_hold_are_rare(counts, expected):
    assert rarity(counts) == pytest.approx(expected, rel=1e-15)


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("samples", "counts", "options", "raw"),
    [
        # T1: .290698, .523256 and .186047; s = 1, .9, .8.
        ([100, 200, 100], T1, {}, [125, 225, 80]),
        ([100, 200, 100], T1, {"rarity": False}, [100, 180, 80]),
        ([100, 200, 100], T1, {"speeds": [1.0]}, [125, 250, 100]),
        ([100, 200, 100], T1, {"speeds": [1.0], "rarity": False}, [100, 200, 100]),
        ([100, 200, 100], T1, {"speeds": [0.5, 1.0]}, [62.5, 250, 50]),
        ([100, 200, 100], T1, {"weights": "equal"}, [1.25, 1.125, 0.8]),
        # T2: samples and speed alone.
        ([3, 1, 2, 5], np.full((4, 3), 2), {}, [3, 0.9, 1.6, 5]),
        ([], np.empty((0, 3)), {}, []),
    ],
)
def test_an_update_counts_by_samples_speed_and_rarity(samples, counts, options, raw):
    assert weights(samples, counts, **options) == pytest.approx(np.array(raw) / sum(raw), rel=1e-14)


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=9))
def test_rarity_is_what_a_count_over_sets_gives(counts):
    sets = [{label for label, count in enumerate(row) if count} for row in counts]
    expected = []
    for own in sets:
        relative = [len(sets) / sum(label in other for other in sets) for label in own]
        b = sum(relative) / len(relative) if relative else 1
        expected.append(min(1.5, 1 + 0.25 * (b - 1)))
    found = rarity(np.array(counts))
    assert found == pytest.approx(expected, rel=1e-14)
    assert found.min() >= 1


def test_weights_of_the_net_of_eight_weights():
    """T10: classes {0, 1}, {1}, {0}."""
    play, first = Play(ALGORITHMS["fedstg"], THREE, {}, START, lr=0.5), []
    for ids in ROUNDS:
        play.round(*ids)
        first.append(play.alpha[0])
    assert first == pytest.approx([0.7142857143, 0.6923076923, 0.8490566038], abs=1e-10)
