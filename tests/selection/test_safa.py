import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.selection.safa import Safa, SafaOptions, first_come_first_merge
from edgesim.selection.safa_lite import SafaLite
from edgesim.selection.view import Options


@pytest.fixture
def knowledge(knowledge_of):
    return knowledge_of(np.full((20, 2), 30))


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=12))
def test_first_come_first_merge_is_a_plain_sort(devices):
    """Not picked last round first, then by finish, then by id."""
    expected = sorted(range(len(devices)), key=lambda row: (devices[row][1], devices[row][0], row))
    finish, before = np.array([d[0] for d in devices], dtype=float), np.array([d[1] for d in devices], dtype=bool)
    assert first_come_first_merge(finish, before).tolist() == expected


def test_the_quota_goes_to_the_fastest_that_were_not_picked_last_round(knowledge, view_of, report_of, offers):
    policy = Safa(SafaOptions(quota=0.2), 20, 2)
    view = view_of(knowledge, outlook={"ready": np.arange(20)[::-1] / 30, "upload": np.full(20, 0.1)})
    assert offers(policy.choose(view), lambda device, taken: True)[1] == [19, 18, 17, 16]
    assert view.outlook.asked == [4]
    policy.hear(report_of(1, range(20), [19, 18, 17, 16]))
    assert offers(policy.choose(view), lambda device, taken: True)[1] == [15, 14, 13, 12]
    policy.hear(report_of(2, range(20), [15, 14, 13, 12]))
    assert offers(policy.choose(view), lambda device, taken: True)[1] == [19, 18, 17, 16]


def test_who_would_be_late_is_not_picked_and_who_is_refused_is_replaced(knowledge, view_of, offers):
    policy = Safa(SafaOptions(quota=0.1), 20, 2)
    view = view_of(knowledge, outlook={"ready": np.where(np.arange(20) < 5, 0.9, 0.2)})
    assert offers(policy.choose(view), lambda device, taken: device % 2 == 1) == ([5, 6, 7], [5, 7])


@pytest.mark.parametrize(("quota", "picked"), [(0.01, 1), (0.1, 2), (0.11, 3), (1.0, 20)])
def test_the_quota_is_rounded_up(quota, picked, knowledge, view_of, offers):
    _, taken = offers(Safa(SafaOptions(quota=quota), 20, 2).choose(view_of(knowledge)), lambda device, taken: True)
    assert len(taken) == picked


def test_the_lite_form_goes_by_rising_use_and_breaks_ties_at_random(knowledge, view_of):
    policy = SafaLite(Options(), 20, 2)
    uses = np.arange(20) % 4
    orders = [next(policy.choose(view_of(knowledge, times_selected=uses, round=r))).tolist() for r in (1, 2)]
    for order in orders:
        assert uses[order].tolist() == sorted(uses)
    assert orders[0] != orders[1]
