"""When rounds make a model: the oracles T5 to T8 of FedStg's page."""

import numpy as np
import pytest

from edgesim.engine.stagnation import Stagnation

PUBLISHED = [
    0.1001, 0.4753, 0.5277, 0.5892, 0.6476, 0.6476, 0.6951, 0.6951, 0.6905, 0.6905, 0.7088, 0.7088, 0.7282,
    0.7282, 0.7387, 0.7387, 0.7465, 0.7465, 0.737, 0.737, 0.7159, 0.7498, 0.7701, 0.7701, 0.7727, 0.7727,
    0.7835, 0.7835, 0.7668, 0.7668, 0.7802, 0.7693, 0.7957, 0.7957, 0.7917, 0.7917, 0.7924, 0.8095, 0.7824,
    0.7824, 0.7935, 0.785, 0.8075, 0.8038, 0.802, 0.8151, 0.7963, 0.7963, 0.7907, 0.817, 0.7821, 0.7821,
    0.8182, 0.8182, 0.8374, 0.8374, 0.808, 0.808, 0.8012, 0.8222, 0.8296, 0.8215, 0.8014, 0.76, 0.7927,
    0.8432, 0.8382, 0.8382, 0.8271, 0.8223, 0.8041, 0.8335, 0.8498, 0.8498, 0.8303, 0.8303, 0.81, 0.8158, 0.8,
    0.8211, 0.8429, 0.8404, 0.8338, 0.8458, 0.8505, 0.8505, 0.8337, 0.8337, 0.8496, 0.8411, 0.8344, 0.8521,
    0.8491, 0.8491, 0.8229, 0.8228, 0.8551, 0.8551, 0.8614, 0.8614, 0.8238,
]  # fmt: skip
"""Accuracy after rounds 0 to 100 in the log of the published program."""
AGGREGATED = [
    1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 21, 22, 24, 26, 28, 30, 31, 32, 34, 36, 37, 38, 40, 41, 42, 43,
    44, 45, 46, 48, 49, 50, 52, 54, 56, 58, 59, 60, 61, 62, 63, 64, 65, 66, 68, 69, 70, 71, 72, 74, 76, 77,
    78, 79, 80, 81, 82, 83, 84, 86, 88, 89, 90, 91, 92, 94, 95, 96, 98, 100,
]  # fmt: skip
"""Rounds that aggregated in it."""


def replay(history):
    """Rounds that are due, where accuracies after all rounds are given."""
    schedule, due = Stagnation(), []
    schedule.hear(0, history[0])
    for round, accuracy in enumerate(history[1:], start=1):
        if schedule.is_due(round):
            due.append(round)
        schedule.hear(round, accuracy)
    return due


def by_the_page(accuracy, T):
    """The page's pseudo-code, word for word."""
    best, every, stagnant, aggregated = 0, False, 0, []
    for R in range(T + 1):
        due = R <= 4 or every or R % 2 == 0
        if R >= 1 and due:
            aggregated.append(R)
        a = accuracy[R]
        if a > best:
            best, every, stagnant = a, False, 0
        elif due:
            stagnant = stagnant + 1
            if stagnant >= 2:
                every = True
    return aggregated


def test_the_published_run_is_replayed_to_the_round():
    """T7."""
    assert replay(PUBLISHED) == AGGREGATED
    assert len(AGGREGATED) == 72


def test_while_accuracy_rises_every_second_round_is_due_and_else_all_are():
    """T5, whose numbers the page's pseudo-code has to give as well, and T6."""
    rising = np.linspace(0.1, 0.9, 101)
    assert replay(rising) == by_the_page(rising, 100) == [1, 2, 3, *range(4, 101, 2)]
    assert replay([0.1] * 101) == by_the_page([0.1] * 101, 100) == [*range(1, 101)]


@pytest.mark.parametrize("number", range(20))
def test_a_thousand_random_histories_are_as_the_pages_pseudo_code_has_them(number):
    """Fifty each, of few values, so that many are equal, and of 0."""
    random = np.random.default_rng(number)
    for _ in range(50):
        history = random.integers(0, random.integers(2, 200), random.integers(2, 60)) / 200
        if random.random() < 0.5:
            history = np.sort(history) * (random.random(len(history)) < 0.9)
        assert replay(history) == by_the_page(history, len(history) - 1)


def test_a_skipped_round_without_a_new_model_changes_nothing():
    """T8: the accuracy repeats, and one more due round without a best is what it takes."""
    schedule = Stagnation()
    for round, accuracy in enumerate([0.1, 0.2, 0.3, 0.4, 0.5]):
        schedule.hear(round, accuracy)
    assert not schedule.is_due(5)
    before = Stagnation(**vars(schedule))
    schedule.hear(5, None)
    assert schedule == before
    schedule.hear(6, 0.5)
    assert (schedule.stagnant, schedule.every) == (1, False)
    schedule.hear(7, None)
    assert (schedule.stagnant, schedule.accuracy) == (1, 0.5)
    schedule.hear(8, None)
    assert schedule.every
