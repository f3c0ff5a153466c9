import numpy as np
import pytest
import torch
from quadratics import Play, Quadratic

from edgesim.learning.algorithms.fedavg import FedAvg
from edgesim.learning.algorithms.records import Sizes, State
from edgesim.streams import Streams


@pytest.fixture
def make():
    def make(**options):
        return FedAvg.Server(FedAvg.Options(**options), Sizes(96.0, 3, 4), Streams(0))

    return make


def test_weights_are_shares_of_the_merged_data(make, arrive):
    assert make().weigh(arrive(torch.zeros(3, 3), samples=[100, 100, 200])).tolist() == [0.25, 0.25, 0.5]
    assert make().weigh(arrive(torch.zeros(0, 3), samples=[])).shape == (0,)


def test_equals_count_the_same_whatever_they_hold(make, arrive):
    arrived = arrive(torch.zeros(3, 3), samples=[100, 100, 200])
    assert make(weights="equal").weigh(arrived).tolist() == [1 / 3] * 3
    assert make(weights="samples").weigh(arrived).tolist() == [0.25, 0.25, 0.5]


def test_an_updates_age_scales_what_its_samples_count(make, arrive):
    arrived = arrive(torch.zeros(3, 3), samples=[100, 100, 200], age_weight=np.array([1.0, 0.5, 0.25]))
    assert make().weigh(arrived).tolist() == [0.5, 0.25, 0.25]
    assert make(weights="equal").weigh(arrived).tolist() == pytest.approx([4 / 7, 2 / 7, 1 / 7])


def test_the_model_moves_by_the_weighted_mean_of_the_updates(make, arrive):
    arrived = arrive([[4.0, 0.0, 8.0], [0.0, -2.0, 4.0]])
    new = make().merge(State(torch.tensor([1.0, 1.0, 1.0])), arrived, np.array([0.75, 0.25]), None)
    assert new.weights.tolist() == [4.0, 0.5, 8.0]


def test_two_rounds_on_quadratics_by_hand():
    """Two steps by 1/2 go 3/4 of the way to b = 1 and b = 3; by samples 1 and 3 the mean b is 2.5.

    w_1 = 3/4 of 2.5; w_2 = w_1 + 3/4 (2.5 - w_1).
    """
    devices = [Quadratic(1.0, samples=1), Quadratic(3.0, samples=3)]
    play = Play(FedAvg, devices, lr=0.5)
    assert [play.round(0, 1), play.round(0, 1)] == [1.875, 2.34375]
    equal = Play(FedAvg, devices, {"weights": "equal"}, lr=0.5)
    assert [equal.round(0, 1), equal.round(1, 0)] == [1.5, 1.875]
