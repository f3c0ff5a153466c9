import math
from collections import defaultdict

import numpy as np
import pytest
from candidates import PlainKnowledge, report_of, view_of

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


def order(policy, round, ids):
    view = view_of(PlainKnowledge(np.full((12, 2), 30)), ids=ids, round=round)
    return [int(one) for offer in policy.choose(view) for one in offer]


def test_the_gain_is_the_mean_increment():
    """Oracle T4."""
    assert accuracy_gain(np.array([[0.30, 0.36, 0.35, 0.42, 0.46]]), np.array([5])) == pytest.approx([0.04])


@pytest.mark.parametrize(
    ("round", "last", "value"),
    [(1, 0, 1.030103), (10, 0, 1.104139), (999, 0, 1.3), (999, 9, 1.03), (999, 500, 1.000599)],
)
def test_the_bonus_has_the_worked_values(round, last, value):
    """Oracle T5."""
    assert bonus(round, np.array([last])) == pytest.approx([value], abs=1e-6)


@pytest.mark.parametrize(
    ("acc_map", "utilities", "ranking"),
    [
        ("paper", [0.046374, 0.040166, 0.016665, -0.008038], [A, B, C, D]),
        ("shifted", [0.602858, 0.563840, 0.421748, 0.397883], [A, C, B, D]),
    ],
)
def test_the_worked_utilities_and_orders(acc_map, utilities, ranking):
    """Oracle T6: utilities are listed a, b, c, d for `paper`, and a, c, b, d for `shifted`."""
    policy = worked(acc_map=acc_map)
    found = policy.utilities(np.arange(4), 10)
    listed = found if acc_map == "paper" else found[ranking]
    assert listed == pytest.approx(utilities, abs=1e-6)
    assert order(policy, 10, np.arange(4)) == ranking


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


def test_who_has_no_utility_yet_is_offered_too():
    """Oracle T8: where no more are there than are wanted all are taken."""
    policy = FedDance(FedDanceOptions(), 12, 2)
    policy.hear(report_of(1, [0, 5], [0], loss=2.0))
    assert sorted(order(policy, 7, [0, 3, 5, 11])) == [0, 3, 5, 11]


def history(random):
    """Rounds of (checked in, selected, heard, losses, accuracies) over six devices, some of which are heard late."""
    rounds, on_their_way = [], set()
    for _ in range(random.integers(1, 15)):
        there = [m for m in range(6) if random.random() < 0.6]
        picked = [m for m in there if random.random() < 0.5]
        on_their_way |= set(picked)
        heard = [m for m in sorted(on_their_way) if random.random() < 0.5]
        on_their_way -= set(heard)
        rounds.append((there, picked, heard, random.uniform(0.1, 4, len(heard)), random.uniform(0, 1, len(heard))))
    return rounds


def reference(rounds, unheard, init_newcomers, without, window=3, ahead=2, beta=3):
    """Algorithm 1 over dictionaries, one device at a time; utilities at the start of the round after the last.

    I of a device that was selected is its L, which is 0 as long as it has never delivered (lines 3 and 8), unless it
    keeps the participants' mean; J is the last round in which it was heard, late or not (line 6).
    """
    importance, gain, last = {}, {}, defaultdict(int)
    accuracies, ever, log = defaultdict(list), set(), []
    mean_loss = mean_gain = 0.0
    for r, (there, picked, heard, losses, scores) in enumerate(rounds, start=1):
        ever |= set(picked)
        for m, loss, accuracy in zip(heard, losses, scores, strict=True):
            importance[m], last[m] = loss, r
            accuracies[m] = [*accuracies[m], accuracy][-beta:]
            steps = [b - a for a, b in zip(accuracies[m], accuracies[m][1:], strict=False)]
            gain[m] = sum(steps) / len(steps) if steps else 0.0
        for m in picked:
            if not accuracies[m] and unheard == "zero":
                importance[m] = 0.0
        if heard:
            mean_loss = sum(importance[m] for m in heard) / len(heard)
            mean_gain = sum(gain[m] for m in heard) / len(heard)
        for m in there:
            if m not in ever:
                importance[m], gain[m] = mean_loss, mean_gain
        log.append(there)
    now, utilities = len(rounds) + 1, []
    for m in range(6):
        rate = math.inf if without == "V" else sum(m in there for there in log[-window:]) / window
        new = init_newcomers and m not in ever
        loss, rise = (pair.get(m, mean if new else 0.0) for pair, mean in ((importance, mean_loss), (gain, mean_gain)))
        utility = (1 - math.exp(-rate * ahead)) * loss * (1 + rise) / 2
        utilities.append(utility * (1 + math.log10(now + 1) / (10 * (1 + last[m]))))
    return utilities


@pytest.mark.whole_family
@pytest.mark.parametrize("options", [{}, {"unheard": "guess"}, {"init_newcomers": True}, {"unheard": "zero"}])
def test_the_arrays_do_what_the_algorithm_does_device_by_device(options):
    """Being asked changes nothing: it is no check-in either."""
    for seed in range(15):
        rounds, without = history(np.random.default_rng(seed)), ["none", "V"][seed % 2]
        all_options = {"history_rounds": 3, "future_rounds": 2, "accuracy_window": 3, "without": without} | options
        policy = FedDance(FedDanceOptions(**all_options), 6, 2)
        for r, (there, picked, heard, losses, scores) in enumerate(rounds, start=1):
            assert len(order(policy, r, there)) == len(there)
            policy.hear(report_of(r, there, picked, heard, loss=losses, accuracy=scores))
        expected = reference(rounds, options.get("unheard", "zero"), options.get("init_newcomers", False), without)
        assert policy.utilities(np.arange(6), len(rounds) + 1) == pytest.approx(expected, abs=1e-12)
