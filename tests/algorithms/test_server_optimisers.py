"""FedAvgM, FedAdam and FedYogi against steps worked out by hand; `test_plain_server` has their buffers."""

import math

import numpy as np
import pytest
import torch
from arriving import arrive

from edgesim.config import AlgorithmConfig
from edgesim.learning.algorithms import make_halves
from edgesim.learning.algorithms.records import Sizes
from edgesim.streams import Streams

NAMES = ("fedavgm", "fedadam", "fedyogi")


def make(name, **options):
    return make_halves(AlgorithmConfig(name=name, **options), Sizes(64.0, 2, 4), Streams(0)).server


@pytest.mark.parametrize(
    ("name", "options", "models"),
    [
        # m = 2, then .5 2 + 4 = 5; lr .1.
        ("fedavgm", {"beta": 0.5, "lr": 0.1}, (0.2, 0.7)),
        # m = 1, v = .25 1 + .75 4 = 3.25; then m = .5 + 2 = 2.5, v = .25 3.25 + .75 16 = 12.8125.
        (
            "fedadam",
            {"b1": 0.5, "b2": 0.25, "tau": 1.0, "lr": 1.0},
            (1 / (math.sqrt(3.25) + 1), 1 / (math.sqrt(3.25) + 1) + 2.5 / (math.sqrt(12.8125) + 1)),
        ),
        # v = 1 + .75 4 = 4, since 1 < 4, and then 4 + .75 16 = 16; m as above.
        ("fedyogi", {"b1": 0.5, "b2": 0.25, "tau": 1.0, "lr": 1.0}, (1 / 3, 1 / 3 + 2.5 / 5)),
    ],
    ids=NAMES,
)
def test_steps_by_hand(name, options, models):
    """Mean updates of 2, then of 4: those of samples 3 and 1 with updates 1 and 5, and twice as much."""
    algorithm = make(name, **options)
    state = algorithm.start(torch.zeros(2, dtype=torch.float64), None)
    for scale, expected in zip((1.0, 2.0), models, strict=True):
        updates = scale * torch.tensor([[1.0, 0.0], [5.0, 0.0]], dtype=torch.float64)
        arrived = arrive(updates, samples=[3, 1])
        state = algorithm.merge(state, arrived, algorithm.weigh(arrived), None)
        assert state.weights.tolist() == pytest.approx([expected, 0.0], abs=1e-12)


def test_adams_second_moment_shrinks_at_once_and_yogis_by_small_steps():
    """From v = 1 with no change at all: Adam keeps b2 of it, Yogi takes (1 - b2) times a square of zero away."""
    for name, expected in (("fedadam", 0.25), ("fedyogi", 1.0)):
        algorithm = make(name, b2=0.25, tau=1.0)
        state = algorithm.merge(algorithm.start(torch.zeros(2), None), arrive(torch.zeros(1, 2)), np.ones(1), None)
        assert state.second.tolist() == [expected, expected]
    yogi = make("fedyogi", b2=0.25, tau=2.0)
    state = yogi.merge(yogi.start(torch.zeros(2), None), arrive(torch.ones(1, 2)), np.ones(1), None)
    assert state.second.tolist() == [4 - 0.75, 4 - 0.75]
