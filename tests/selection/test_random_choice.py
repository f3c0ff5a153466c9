from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from candidates import PlainKnowledge, view_of

from edgesim.selection.random_choice import RandomChoice
from edgesim.selection.view import Options


@pytest.fixture
def policy():
    return RandomChoice(Options(), 4, 2)


def test_every_permutation_of_three_candidates_is_equally_frequent(policy):
    knowledge, rounds = PlainKnowledge(np.ones((3, 2), dtype=int)), 500
    seen = Counter(tuple(next(policy.choose(view_of(knowledge, round=k))).tolist()) for k in range(1, rounds + 1))
    error = np.sqrt(rounds * (1 / 6) * (5 / 6))
    assert all(abs(seen[order] - rounds / 6) < 4 * error for order in permutations(range(3)))


def test_an_absent_device_leaves_the_relative_order_of_the_others(policy):
    knowledge = PlainKnowledge(np.ones((9, 2), dtype=int))
    for k in range(1, 20):
        everyone = next(policy.choose(view_of(knowledge, round=k))).tolist()
        some = next(policy.choose(view_of(knowledge, ids=[0, 2, 3, 7], round=k))).tolist()
        assert some == [device for device in everyone if device in (0, 2, 3, 7)]
