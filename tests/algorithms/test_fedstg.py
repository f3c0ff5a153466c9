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


def test_devices_with_classes_that_few_hold_are_rare():
    """T1: rel = (3, 1, 3), b = 2, 2, 1."""
    assert rarity(T1).tolist() == [1.25, 1.25, 1.0]


def test_an_update_counts_by_samples_speed_and_rarity():
    """T1: 125, 225, 80 before they are normalised; s = 1, .9, .8."""
    found = weights([100, 200, 100], T1)
    assert found == pytest.approx([125 / 430, 225 / 430, 80 / 430], rel=1e-14)
    assert found == pytest.approx([0.290698, 0.523256, 0.186047], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "raw"),
    [
        ({"rarity": False}, [100, 180, 80]),
        ({"speeds": [1.0]}, [125, 250, 100]),
        ({"speeds": [1.0], "rarity": False}, [100, 200, 100]),
        ({"speeds": [0.5, 1.0]}, [62.5, 250, 50]),
        ({"weights": "equal"}, [1.25, 1.125, 0.8]),
    ],
)
def test_each_part_of_a_weight_can_be_left_out(options, raw):
    assert weights([100, 200, 100], T1, **options) == pytest.approx(np.array(raw) / sum(raw), rel=1e-14)


def test_rarity_is_bounded_by_one_and_a_half():
    """T2: of 8 devices one holds a class that nobody else holds, so that b = 8 and 1 + .25 * 7 = 2.75."""
    counts = np.zeros((8, 2), dtype=np.int64)
    counts[:, 0], counts[0] = 1, [0, 1]
    assert rarity(counts)[0] == 1.5
    assert rarity(counts)[1:] == pytest.approx(1 + 0.25 * (8 / 7 - 1), rel=1e-15)


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


def test_with_the_same_classes_everywhere_samples_and_speed_count():
    """T2."""
    assert rarity(np.full((5, 3), 7)).tolist() == [1.0] * 5
    found = weights([3, 1, 2, 5], np.full((4, 3), 2))
    assert found == pytest.approx(np.array([3, 0.9, 1.6, 5]) / 10.5, rel=1e-14)


@pytest.mark.parametrize("classes", [0, 3])
def test_devices_without_classes_are_not_rare(classes):
    assert rarity(np.zeros((2, classes), dtype=np.int64)).tolist() == [1.0, 1.0]
    assert len(weights([], np.empty((0, classes)))) == 0


def test_weights_of_the_net_of_eight_weights():
    """T10: classes {0, 1}, {1}, {0}."""
    play, first = Play(ALGORITHMS["fedstg"], THREE, {}, START, lr=0.5), []
    for ids in ROUNDS:
        play.round(*ids)
        first.append(play.alpha[0])
    assert first == pytest.approx([0.7142857143, 0.6923076923, 0.8490566038], abs=1e-10)
