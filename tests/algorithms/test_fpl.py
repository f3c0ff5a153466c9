"""FPL: its terms worked out by hand, prototypes after a round, and what is charged for them."""

import math

import numpy as np
import pytest
import torch
from arriving import arrive
from eight_weights import START, THREE
from quadratics import Play

from edgesim.learning.algorithms.fpl import Fpl
from edgesim.learning.algorithms.records import Devices, Outputs, Sizes, Step
from edgesim.streams import Streams

NONE = [math.nan, math.nan]


def terms(table, features, labels, share=None, **options):
    """The two terms of each sample, [n], without its cross-entropy of log 2."""
    algorithm = Fpl.Local(Fpl.Options(**options), Sizes(0.0, 0, 1, 2, 2), Streams(0))
    share = torch.full((len(labels),), 1 / len(labels)) if share is None else torch.tensor(share)
    own = Outputs(torch.zeros(len(labels), 2, dtype=torch.float64), torch.tensor(features, dtype=torch.float64))
    table = torch.tensor(table, dtype=torch.float64)
    return algorithm.loss(Step(own, {}, torch.tensor(labels), share.double(), {"prototypes": table})) - math.log(2)


def test_the_terms_are_what_the_paper_writes():
    """z = (2, 0); its class has (1, 0) and (0, 1), the other one (-1, 0): cosines 1, 0, -1; tau 1.

    The unbiased prototype is (.5, .5): z is (1.5, -.5) away, 2.5 in square.
    """
    table = [[[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], NONE]]
    e = math.e
    contrast = -math.log((e + 1) / (e + 1 + 1 / e))
    assert terms(table, [[2.0, 0.0]], [0], tau=1.0).tolist() == pytest.approx([contrast + 1.25], abs=1e-12)
    assert terms(table, [[2.0, 0.0]], [0], tau=1.0, upcr="sum").tolist() == pytest.approx([contrast + 2.5], abs=1e-12)


def test_the_terms_are_means_over_the_samples_whose_class_has_prototypes():
    """Of three samples, one of which only fills up, one has a prototype of its class: it counts for both."""
    table = [[[1.0, 0.0]], [NONE]]
    found = terms(table, [[2.0, 0.0], [1.0, 1.0], [2.0, 0.0]], [0, 1, 0], share=[0.5, 0.5, 0.0])
    assert found[:2].tolist() == pytest.approx([2 * 0.5, 0.0], abs=1e-12)
    assert not terms([[NONE], [NONE]], [[2.0, 0.0], [1.0, 1.0]], [0, 1]).any()


def test_rows_that_are_not_there_leave_gradients_finite():
    algorithm = Fpl.Local(Fpl.Options(), Sizes(0.0, 0, 1, 2, 2), Streams(0))
    z = torch.tensor([[2.0, 0.5], [1.0, 1.0]], requires_grad=True)
    table = torch.tensor([[[1.0, 0.0], NONE], [NONE, NONE]])
    step = Step(Outputs(torch.zeros(2, 2), z), {}, torch.tensor([0, 1]), torch.full((2,), 0.5), {"prototypes": table})
    (gradient,) = torch.autograd.grad(algorithm.loss(step).mean(), z)
    assert gradient.isfinite().all()
    assert gradient[0].any()
    assert not gradient[1].any()


def test_prototypes_of_the_net_of_eight_weights_and_what_they_cost():
    """Device 1 holds class 1 alone and device 2 class 0 alone, so that after round 2 each class has one prototype."""
    play = Play(Fpl, THREE, {"tau": 0.5}, START, lr=0.5)
    devices = Devices(np.arange(3), np.array([device.class_counts for device in THREE]), np.array([4, 2, 1]))
    model_bits = 32 * 8.0
    assert play.server.download_bits(devices, 1, play.ledger).tolist() == [model_bits] * 3
    assert play.local.upload_bits(devices, 1, play.ledger).tolist() == [
        model_bits + 32 * 2 * classes for classes in (2, 1, 1)
    ]
    play.round(0, 1)
    # Two prototypes of class 1, the nearest to each other: one cluster.
    assert play.server.download_bits(devices, 2, play.ledger).tolist() == [model_bits + 32 * 2 * 2] * 3
    play.round(1, 2)
    expected = [[[0.5841749653, -0.1643740223]], [[0.0101017282, 0.1066159327]]]
    assert play.state.shared["prototypes"].numpy() == pytest.approx(np.array(expected), abs=1e-10)


def test_a_class_that_no_arrival_holds_has_no_prototype_until_one_does():
    play = Play(Fpl, THREE, {}, START, lr=0.5)
    play.round(0, 1)
    play.round(1)
    assert play.state.shared["prototypes"].isnan().all(-1).tolist() == [[True], [False]]
    assert play.ledger.prototypes_sent == 1
    play.round()
    assert play.state.shared["prototypes"].isnan().all(-1).tolist() == [[True], [False]]
    play.round(2)
    assert play.state.shared["prototypes"].isnan().all(-1).tolist() == [[False], [True]]


@pytest.mark.parametrize(("senders", "rows"), [([0, 1], 1), ([2, 3], 2), ([4, 5], 4), ([0, 0], 0)])
def test_without_training_at_most_half_as_many_clusters_as_senders_are_charged(senders, rows):
    algorithm = Fpl.Server(Fpl.Options(), Sizes(0.0, 0, 5, 2, 2), Streams(0))
    ledger = algorithm.ledger(1, None)
    held = np.stack([np.arange(5) < count for count in senders], axis=1).astype(np.int64)
    algorithm.note(ledger, arrive(torch.zeros(5, 1), class_counts=held))
    assert ledger.prototypes_sent == rows
