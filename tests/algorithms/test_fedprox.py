import pytest
import torch
from quadratics import Play, Quadratic

from edgesim.learning.algorithms.fedprox import FedProx
from edgesim.learning.algorithms.records import Pull, Sizes
from edgesim.streams import Streams


def test_two_rounds_on_quadratics_by_hand():
    """With mu = 1 the first of two steps by 1/2 goes half the way to b, and there both terms balance: half of 2.5 each.

    w_1 = 1/2 of 2.5; w_2 = w_1 + 1/2 (2.5 - w_1).
    """
    play = Play(FedProx, [Quadratic(1.0, samples=1), Quadratic(3.0, samples=3)], {"mu": 1.0}, lr=0.5)
    assert [play.round(0, 1), play.round(0, 1)] == [1.25, 1.875]


def test_many_steps_end_where_the_pull_and_the_loss_balance():
    """The minimum of (w - b)^2 / 2 + mu w^2 / 2 is b / (1 + mu), here 3 / 1.5; with mu = 0 it is b."""
    assert Play(FedProx, [Quadratic(3.0)], {"mu": 0.5}, lr=0.5, steps=60).round(0) == pytest.approx(2.0)
    assert Play(FedProx, [Quadratic(3.0)], {"mu": 0.0}, lr=0.5, steps=60).round(0) == pytest.approx(3.0)


def test_the_pull_is_towards_the_start_by_mu():
    algorithm = FedProx.Local(FedProx.Options(mu=0.3), Sizes(32.0, 1, 1), Streams(0))
    assert algorithm.pull({"start": torch.zeros(1)}) == Pull(to_start=0.3)
    assert FedProx.Options().mu == 0.01
