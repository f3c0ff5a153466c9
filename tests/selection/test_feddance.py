import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.selection.feddance import FedDance, FedDanceOptions, accuracy_factor, accuracy_gain, bonus

A, B, C, D = range(4)


def worked(**options):
    """Oracle T6: R = 10; c was never selected, and a and d took part last round."""
    policy = FedDance(FedDanceOptions(**options), 4, 2)
    state = policy.state
    state.log.counts[:] = [25, 5, 40, 50]
    state.importance[[A, B, D]] = [1.25, 2.0, 0.8]
    state.gain[[A, B, D]] = [0.04, 0.05, -0.01]
    state.last[[A, B, D]] = [9, 4, 8]
    state.heard[[A, B, D]] = 5
    state.selected[[A, B, D]] = state.estimated[[A, B, D]] = True
    state.mean_importance, state.mean_gain = 1.025, 0.015
    state.guess(np.array([C]))
    return policy


def order(policy, view_of, knowledge, round, ids=None, seed=0):
    return [int(one) for offer in policy.choose(view_of(knowledge, ids=ids, round=round, seed=seed)) for one in offer]


@pytest.fixture
def knowledge(knowledge_of):
    return knowledge_of(np.full((12, 2), 30))


def test_importance_is_the_mean_loss_and_the_gain_the_mean_increment(report_of):
    """Oracle T4."""
    assert accuracy_gain(np.array([[0.30, 0.36, 0.35, 0.42, 0.46]]), np.array([5])) == pytest.approx([0.04])
    policy = FedDance(FedDanceOptions(), 1, 2)
    for r, (loss, accuracy) in enumerate([(2.0, 0.1), (1.25, 0.30), (1.5, 0.36), (1.1, 0.35), (1.2, 0.42)], start=1):
        policy.hear(report_of(r, [0], [0], loss=loss, accuracy=accuracy))
    # Five participations heard of; with the sixth the first is forgotten.
    assert policy.state.gain[0] == pytest.approx((0.42 - 0.1) / 4)
    policy.hear(report_of(6, [0], [0], loss=np.mean([[2, 1], [1.5, 0.5]]), accuracy=0.46))
    assert policy.state.importance[0] == 1.25
    assert policy.state.gain[0] == pytest.approx(0.04)


def test_fewer_participations_than_the_window_count_the_increments_there_are():
    accuracies = np.array([[0.0, 0.0, 0.7], [0.0, 0.2, 0.5], [0.1, 0.2, 0.5]])
    assert accuracy_gain(accuracies, np.array([1, 2, 3])) == pytest.approx([0.0, 0.3, 0.2])


@pytest.mark.parametrize(
    ("round", "last", "value"),
    [(1, 0, 1.030103), (10, 0, 1.104139), (999, 0, 1.3), (999, 9, 1.03), (999, 500, 1.000599)],
)
def test_the_bonus_has_the_worked_values(round, last, value):
    """Oracle T5."""
    assert bonus(round, np.array([last])) == pytest.approx([value], abs=1e-6)


@given(st.integers(1, 2000), st.integers(0, 2000), st.integers(0, 2000))
def test_the_bonus_is_never_below_one_rises_with_the_round_and_falls_with_the_last_use(round, last, later):
    earlier, later = sorted([last, last + later])
    assert 1 <= bonus(round, np.array([later]))[0] <= bonus(round, np.array([earlier]))[0]
    assert bonus(round, np.array([last]))[0] < bonus(round + 1, np.array([last]))[0]


@pytest.mark.parametrize(
    ("acc_map", "utilities", "ranking"),
    [
        ("paper", [0.046374, 0.040166, 0.016665, -0.008038], [A, B, C, D]),
        ("shifted", [0.602858, 0.563840, 0.421748, 0.397883], [A, C, B, D]),
    ],
)
def test_the_worked_utilities_and_orders(acc_map, utilities, ranking, knowledge, view_of):
    """Oracle T6: utilities are listed a, b, c, d for `paper`, and a, c, b, d for `shifted`."""
    policy = worked(acc_map=acc_map)
    found = policy.utilities(np.arange(4), 10)
    listed = found if acc_map == "paper" else found[ranking]
    assert listed == pytest.approx(utilities, abs=1e-6)
    assert order(policy, view_of, knowledge, 10, ids=np.arange(4)) == ranking


def test_a_falling_accuracy_makes_a_paper_utility_negative_and_the_other_maps_positive():
    assert worked(acc_map="paper").utilities(np.array([D]), 10)[0] < 0
    assert accuracy_factor(np.array([-0.2, 0.0, 0.2]), "shifted") == pytest.approx([0.4, 0.5, 0.6])
    assert accuracy_factor(np.array([-0.2, 0.0, 0.2]), "abs") == pytest.approx([0.6, 0.5, 0.6])


@pytest.mark.parametrize("without", ["V", "A", "I", "VA", "U"])
def test_an_ablation_leaves_its_factors_out(without):
    ids = np.arange(4)
    whole, less = worked().utilities(ids, 10), worked(without=without).utilities(ids, 10)
    state = worked().state
    factors = {
        "V": 1 - np.exp(-state.log.counts / 50 * 5),
        "A": (1 + state.gain) / 2,
        "I": state.importance,
        "U": bonus(10, state.last),
    }
    assert less * np.prod([factors[letter] for letter in without], axis=0) == pytest.approx(whole)


@given(st.integers(0, 3), st.sampled_from(["log", "importance", "gain"]), st.floats(1e-3, 1.0))
def test_more_of_any_factor_never_lowers_a_rank(device, factor, more):
    """Oracle T7, for `shifted`."""
    before, after = worked(), worked()
    if factor == "log":
        after.state.log.counts[device] += int(1 + 10 * more)
    else:
        getattr(after.state, factor)[device] += more
    ids = np.arange(4)
    rank = [int(np.sum(policy.utilities(ids, 10) > policy.utilities(ids, 10)[device])) for policy in (before, after)]
    assert rank[1] <= rank[0]
    assert (before.utilities(ids, 10) >= 0).all()


@given(st.floats(1e-3, 1e3))
def test_losses_in_another_unit_change_no_order(scale):
    """Oracle T7."""
    one, other = worked(), worked()
    other.state.importance *= scale
    assert (
        np.argsort(one.utilities(np.arange(4), 10)).tolist() == np.argsort(other.utilities(np.arange(4), 10)).tolist()
    )


def test_the_first_round_is_random_and_the_seed_decides(knowledge, view_of):
    """Oracle T8."""
    firsts = {tuple(order(FedDance(FedDanceOptions(), 12, 2), view_of, knowledge, 1, seed=s)[:3]) for s in range(20)}
    assert len(firsts) > 10
    assert all(set(first) <= set(range(12)) for first in firsts)
    assert len({order(FedDance(FedDanceOptions(), 12, 2), view_of, knowledge, 1, seed=4)[0] for _ in range(3)}) == 1


@pytest.mark.parametrize("round", [1, 7])
def test_where_no_more_are_there_than_are_wanted_all_are_offered(round, knowledge, view_of, report_of):
    """Oracle T8: |P| <= N returns P, also who has no utility yet."""
    policy = FedDance(FedDanceOptions(), 12, 2)
    if round > 1:
        policy.hear(report_of(1, [0, 5], [0], loss=2.0))
    assert sorted(order(policy, view_of, knowledge, round, ids=[0, 3, 5, 11])) == [0, 3, 5, 11]


def test_the_check_in_of_the_round_that_is_decided_does_not_count(knowledge, view_of, report_of):
    """lambda_m(r) sums D_m(v) for v < r: of two rounds device 0 has none, so it is last whatever its loss is.

    With its check-in of round 4 counted it would come first: (1 - exp(-5/2)) 1000 against (1 - exp(-5)) 1.
    """
    policy = FedDance(FedDanceOptions(history_rounds=2), 12, 2)
    policy.hear(report_of(1, [0, 1], [0, 1], loss=[1000.0, 1.0]))
    for r in (2, 3):
        policy.hear(report_of(r, [1], [1], loss=1.0))
    assert order(policy, view_of, knowledge, 4, ids=[0, 1]) == [1, 0]
    # Being asked is no check-in either.
    assert order(policy, view_of, knowledge, 4, ids=[0, 1]) == [1, 0]
    policy.hear(report_of(4, [0, 1], []))
    assert order(policy, view_of, knowledge, 5, ids=[0, 1]) == [0, 1]


def test_a_latecomer_that_was_not_selected_this_round_is_heard_of(report_of):
    """What it brings counts in the round in which it arrives: importance, accuracy and J."""
    policy = FedDance(FedDanceOptions(), 3, 2)
    policy.hear(report_of(1, [0, 1], [0, 1], heard=[0], loss=2.0))
    policy.hear(report_of(2, [0, 1], [0], heard=[0, 1], loss=[1.0, 3.0], accuracy=[0.5, 0.25]))
    state = policy.state
    assert (state.importance[1], state.last[1], state.heard[1], state.accuracies[1, -1]) == (3.0, 2, 1, 0.25)
    assert state.mean_importance == 2.0


def test_who_never_delivers_keeps_the_whole_bonus_however_often_it_is_selected(report_of):
    """J is the last round whose update arrived: Algorithm 1 takes it from the feedback (line 6)."""
    policy = FedDance(FedDanceOptions(without="VA"), 3, 2)
    for r in range(1, 41):
        policy.hear(report_of(r, [0, 1], [0, 1], heard=[0]))
    assert policy.state.last.tolist() == [40, 0, 0]
    policy.state.importance[:] = 1.0
    ratio = policy.utilities(np.array([1]), 41) / policy.utilities(np.array([0]), 41)
    assert ratio == pytest.approx((1 + math.log10(42) / 10) / (1 + math.log10(42) / 410))


def test_a_device_that_has_never_delivered_comes_last_until_it_does_unless_told_otherwise(report_of):
    """Algorithm 1 read literally: device 1 fails at its first selection, device 2 only after it has delivered once."""
    for options, expected in (({"unheard": "guess"}, [4.0, 2.0]), ({"unheard": "zero"}, [0.0, 2.0]), ({}, [0.0, 2.0])):
        policy = FedDance(FedDanceOptions(**options), 3, 2)
        policy.hear(report_of(1, [0, 1, 2], [0, 2], loss=[6.0, 2.0]))
        policy.hear(report_of(2, [0, 1, 2], [1, 2], heard=[]))
        assert policy.state.importance[[1, 2]].tolist() == expected
        policy.hear(report_of(3, [0, 1, 2], [0], loss=1.0))
        assert policy.state.importance[[1, 2]].tolist() == expected
        policy.hear(report_of(4, [0, 1, 2], [1], loss=0.5))
        assert policy.state.importance[1] == 0.5


def test_who_does_not_report_keeps_everything(report_of):
    """Oracle T9."""
    policy = worked()
    state = policy.state
    before = [column[B].copy() for column in (state.importance, state.gain, state.last, state.accuracies)]
    policy.hear(report_of(10, [A, B], [A, B], heard=[A], loss=9.0, accuracy=0.9))
    after = [column[B] for column in (state.importance, state.gain, state.last, state.accuracies)]
    assert all(np.array_equal(old, new) for old, new in zip(before, after, strict=True))
    assert state.last[A] == 10


def test_the_never_selected_follow_the_participants_whenever_they_are_there(report_of):
    """Oracle T9; the means are kept when nobody reports."""
    policy = worked()
    seen = []
    for r, (there, loss, heard) in enumerate(
        [([A, C], 2.0, [A]), ([A], 3.0, [A]), ([A, C], 4.0, []), ([A, C], 5.0, [A])]
    ):
        policy.hear(report_of(10 + r, there, [A], heard=heard, loss=loss))
        seen.append(policy.state.importance[C])
    assert seen == [2.0, 2.0, 3.0, 5.0]


def test_newcomers_wait_a_round_unless_told_otherwise(report_of):
    for init_newcomers, first in ((False, 0.0), (True, 1.5)):
        policy = FedDance(FedDanceOptions(init_newcomers=init_newcomers, without="V"), 3, 2)
        policy.hear(report_of(1, [0], [0], loss=1.5))
        assert policy.utilities(np.array([2]), 2) == pytest.approx(first * 0.5 * bonus(2, np.array([0])))
        policy.hear(report_of(2, [0, 2], [0], loss=2.5))
        assert policy.utilities(np.array([2]), 3) == pytest.approx(2.5 * 0.5 * bonus(3, np.array([0])))


@st.composite
def histories(draw):
    """Rounds of (checked in, selected, heard, losses, accuracies) over six devices."""
    rounds = []
    for _ in range(draw(st.integers(1, 9))):
        there = draw(st.lists(st.integers(0, 5), unique=True))
        picked = [m for m in there if draw(st.booleans())]
        heard = [m for m in picked if draw(st.booleans())]
        values = [(draw(st.floats(0.1, 4)), draw(st.floats(0, 1))) for _ in heard]
        rounds.append((sorted(there), picked, heard, values))
    return rounds


def reference(rounds, window=3, ahead=2, beta=3):
    """Algorithm 1 over dictionaries, one device at a time; utilities at the start of the round after the last.

    I of a device that was selected is its L, which is 0 as long as it has never delivered (lines 3 and 8).
    """
    importance, gain, last = defaultdict(float), defaultdict(float), defaultdict(int)
    accuracies, ever, log = defaultdict(list), set(), []
    mean_loss = mean_gain = 0.0
    for r, (there, picked, heard, values) in enumerate(rounds, start=1):
        ever |= set(picked)
        for m in picked:
            if not accuracies[m]:
                importance[m] = 0.0
        for m, (loss, accuracy) in zip(heard, values, strict=True):
            importance[m], last[m] = loss, r
            accuracies[m] = [*accuracies[m], accuracy][-beta:]
            steps = [b - a for a, b in zip(accuracies[m], accuracies[m][1:], strict=False)]
            gain[m] = sum(steps) / len(steps) if steps else 0.0
        if heard:
            mean_loss = sum(importance[m] for m in heard) / len(heard)
            mean_gain = sum(gain[m] for m in heard) / len(heard)
        for m in there:
            if m not in ever:
                importance[m], gain[m] = mean_loss, mean_gain
        log.append(there)
    now = len(rounds) + 1
    utilities = []
    for m in range(6):
        rate = sum(m in there for there in log[-window:]) / window
        utility = (1 - math.exp(-rate * ahead)) * importance[m] * (1 + gain[m]) / 2
        utilities.append(utility * (1 + math.log10(now + 1) / (10 * (1 + last[m]))))
    return utilities


@given(histories())
def test_the_arrays_do_what_the_algorithm_does_device_by_device(report_of, rounds):
    policy = FedDance(FedDanceOptions(history_rounds=3, future_rounds=2, accuracy_window=3), 6, 2)
    for r, (there, picked, heard, values) in enumerate(rounds, start=1):
        losses, accuracies = zip(*values, strict=True) if values else ([], [])
        policy.hear(report_of(r, there, picked, heard, loss=losses, accuracy=accuracies))
    assert policy.utilities(np.arange(6), len(rounds) + 1) == pytest.approx(reference(rounds), abs=1e-12)
