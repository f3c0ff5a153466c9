import numpy as np
import pytest
from candidates import PlainKnowledge, offers, view_of
from hypothesis import given
from hypothesis import strategies as st

from edgesim.selection.safa import SafaPolicy, SafaPolicyOptions, first_come_first_merge
from edgesim.selection.safa_lite import SafaLite
from edgesim.selection.view import Options


@pytest.fixture
def knowledge():
    return PlainKnowledge(np.full((20, 2), 30))


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=12))
def test_first_come_first_merge_is_a_plain_sort(devices):
    """Not picked last round first, then by finish, then by id."""
    expected = sorted(range(len(devices)), key=lambda row: (devices[row][1], devices[row][0], row))
    finish, before = np.array([d[0] for d in devices], dtype=float), np.array([d[1] for d in devices], dtype=bool)
    assert first_come_first_merge(finish, before).tolist() == expected


def test_everybody_is_asked_to_train_in_the_order_in_which_they_would_be_merged(knowledge):
    policy = SafaPolicy(SafaPolicyOptions(quota=0.2), 20, 2)
    view = view_of(knowledge, estimates={"ready": np.arange(20)[::-1] / 30, "upload": np.full(20, 0.1)})
    assert offers(policy.choose(view), lambda device, taken: True)[0] == list(range(20))[::-1]
    assert view.estimates.asked == [20]
    policy.draft(np.array([19, 18]), 10)
    assert offers(policy.choose(view), lambda device, taken: True)[0] == [*list(range(18))[::-1], 19, 18]


def test_the_quota_goes_to_the_first_to_arrive_that_were_not_picked_last_round():
    policy = SafaPolicy(SafaPolicyOptions(quota=0.2), 20, 2)
    arrived = np.arange(20)[::-1]
    assert [policy.draft(arrived, 20).tolist() for _ in range(3)] == [
        [19, 18, 17, 16],
        [15, 14, 13, 12],
        [19, 18, 17, 16],
    ]
    # Where too few others arrive, those picked last round fill the quota, the first to arrive first.
    assert policy.draft(np.array([16, 3, 18, 19]), 20).tolist() == [3, 16, 18, 19]
    assert policy.draft(np.array([3, 19]), 20).tolist() == [3, 19]
    assert policy.draft(np.empty(0, dtype=np.int64), 20).tolist() == []


@pytest.mark.parametrize(("quota", "picked"), [(0.01, 1), (0.1, 2), (0.11, 3), (1.0, 20)])
def test_the_quota_is_a_share_of_the_candidates_rounded_up(quota, picked):
    assert len(SafaPolicy(SafaPolicyOptions(quota=quota), 20, 2).draft(np.arange(20), 20)) == picked


def test_the_lite_form_goes_by_rising_use_and_breaks_ties_at_random(knowledge):
    policy = SafaLite(Options(), 20, 2)
    uses = np.arange(20) % 4
    orders = [next(policy.choose(view_of(knowledge, times_selected=uses, round=r))).tolist() for r in (1, 2)]
    for order in orders:
        assert uses[order].tolist() == sorted(uses)
    assert orders[0] != orders[1]
