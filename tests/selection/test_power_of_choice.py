from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from candidates import PlainKnowledge, schedule, view_of

from edgesim.selection.power_of_choice import PowerOfChoice, PowerOfChoiceOptions


@pytest.fixture
def knowledge():
    return PlainKnowledge(np.array([[1, 0], [1, 1], [2, 1], [2, 2]]), loss=np.array([0.5, 0.7, 0.7, 0.6]))


def test_devices_are_drawn_in_proportion_to_their_data_without_replacement(knowledge):
    """The pair {i, j} has probability D_i/T * D_j/(T - D_i) + D_j/T * D_i/(T - D_j)."""
    policy, rounds, sizes = PowerOfChoice(PowerOfChoiceOptions(d=2), 4, 2), 500, [1, 2, 3, 4]
    seen = Counter(frozenset(next(policy.choose(view_of(knowledge, round=k))).tolist()) for k in range(1, rounds + 1))
    for pair in combinations(range(4), 2):
        exact = sum(sizes[i] / 10 * sizes[j] / (10 - sizes[i]) for i, j in permutations(pair))
        assert abs(seen[frozenset(pair)] - rounds * exact) < 4 * np.sqrt(rounds * exact * (1 - exact)), pair


def test_only_the_devices_drawn_are_asked_and_go_by_falling_loss(knowledge):
    policy = PowerOfChoice(PowerOfChoiceOptions(d=3), 4, 2)
    for k in range(1, 30):
        view = view_of(knowledge, round=k)
        _, taken = schedule(policy.choose(view), view)
        assert knowledge.asked == {"losses": sorted(taken)}
        assert taken == [device for device in (1, 2, 3, 0) if device in taken]
        assert len(taken) == 3


def test_with_fewer_candidates_than_d_all_of_them_are_asked(knowledge):
    view = view_of(knowledge, ids=[0, 2, 3])
    assert schedule(PowerOfChoice(PowerOfChoiceOptions(), 4, 2).choose(view), view)[1] == [2, 3, 0]
