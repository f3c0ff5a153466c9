"""What protocols do with updates, on scalars."""

import numpy as np
import pytest
import torch
from arriving import arrive

from edgesim.engine.protocols import PROTOCOLS
from edgesim.learning.algorithms.fedavg import FedAvg
from edgesim.learning.algorithms.records import Sizes, State
from edgesim.streams import Streams

FEDAVG = FedAvg.Server(FedAvg.Options(), Sizes(32.0, 1, 3), Streams(0))


def rule(protocol, **options):
    return PROTOCOLS[protocol](PROTOCOLS[protocol].Options(**options)).rule


def merged(rule, model, arrived):
    state = State(torch.tensor([model], dtype=torch.float64), {"c": torch.tensor([7.0])})
    new = rule.merge(FEDAVG, state, arrived, rule.weigh(FEDAVG, arrived), None)
    assert new.shared == state.shared
    return float(new.weights)


def test_a_buffer_is_divided_by_its_length_not_by_its_weights():
    deltas = torch.ones(2, 1, dtype=torch.float64)
    late = arrive(deltas, age_weight=np.array([0.707107, 1.0]))
    assert merged(rule("buffered"), 1.0, late) == pytest.approx(1.853553, abs=1e-6)
    assert merged(rule("buffered", server_lr=0.5), 1.0, arrive(deltas)) == pytest.approx(1.5)


def test_a_buffer_looks_at_no_samples_and_makes_a_model_of_as_many_updates_as_it_holds():
    """0.5 / 4 of each of 1, 2, 4, 8, by ages 1, 1/2, 1/4, 1/8."""
    arrived = arrive(
        torch.tensor([[1.0], [2.0], [4.0], [8.0]], dtype=torch.float64),
        samples=[1, 100, 1, 100],
        age_weight=np.array([1.0, 0.5, 0.25, 0.125]),
    )
    buffered = rule("buffered", buffer=4, server_lr=0.5)
    assert (buffered.updates_per_model, rule("buffered").updates_per_model) == (4, 10)
    assert merged(buffered, 3.0, arrived) == 3.5


def test_mixing_is_between_the_model_and_what_the_client_sends():
    """asynchronous.md: 0.5 mixed with 0 + 1, and 1.625 with 0.75 + 1, each half and half."""
    half = rule("asynchronous", mixing=0.5)
    for model, start, expected in ((0.5, 0.0, 0.75), (1.625, 0.75, 1.6875)):
        starts = [torch.tensor([start], dtype=torch.float64)]
        assert merged(half, model, arrive(torch.ones(1, 1, dtype=torch.float64), starts)) == pytest.approx(expected)


def test_mixing_is_six_tenths_unless_told_otherwise_less_with_age_and_one_update_after_another():
    """alpha = 0.6: 10 -> 0.4 * 10 + 0.6 * (2 + 1) = 5.8; at half the weight 0.7 * 5.8 + 0.3 * (4 - 2) = 4.66."""
    arrived = arrive(
        torch.tensor([[1.0], [-2.0]], dtype=torch.float64),
        list(torch.tensor([[2.0], [4.0]], dtype=torch.float64)),
        samples=[1, 100],
        age_weight=np.array([1.0, 0.5]),
    )
    assert rule("asynchronous").weigh(FEDAVG, arrived).tolist() == [0.6, 0.3]
    assert merged(rule("asynchronous"), 10.0, arrived) == pytest.approx(4.66)
    assert rule("asynchronous").updates_per_model == 1
