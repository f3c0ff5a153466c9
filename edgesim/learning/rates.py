"""Schedules of the learning rate of local training, by round."""

import math
from collections.abc import Callable

from edgesim.config import LearningConfig


def decay(learning: LearningConfig, round: int) -> float:
    """Rate that shrinks by a factor every ``lr_decay_every`` rounds, or as 1 / (round + ``lr_offset``)."""
    if learning.lr_offset is not None:
        return max(learning.lr_min, learning.lr * (1 + learning.lr_offset) / (round + learning.lr_offset))
    return max(learning.lr_min, learning.lr * learning.lr_decay ** ((round - 1) // learning.lr_decay_every))


def fedstg(learning: LearningConfig, round: int) -> float:
    """Half a cosine from lr to lr / 2 in T = ``lr_rounds`` rounds, three quarters of it in the last quarter of T and
    half of these in the last tenth, there at least lr / 10. After T it stays.

    FedStg's public code, server.py, with lr = 0.001 and T = 100.
    """
    rounds = learning.lr_rounds or LR_ROUNDS
    turn = min(round, rounds)
    rate = learning.lr / 2 + learning.lr / 4 * (1 + math.cos(math.pi * turn / rounds))
    if 4 * turn > 3 * rounds:
        rate *= 0.75
    return max(rate / 2, learning.lr / 10) if 10 * turn > 9 * rounds else rate


LR_ROUNDS = 100
"""T of ``fedstg`` when ``learning.lr_rounds`` is absent."""

SCHEDULES: dict[str, Callable[[LearningConfig, int], float]] = {"decay": decay, "fedstg": fedstg}


def rate_in(learning: LearningConfig, round: int) -> float:
    """Learning rate of a round, from 1."""
    return SCHEDULES[learning.lr_schedule or "decay"](learning, round)
