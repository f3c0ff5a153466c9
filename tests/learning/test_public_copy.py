"""The model that devices know where changes of models are coded, on quadratics worked out by hand."""

import math

import numpy as np
import pytest
import torch
from begun import begun

from edgesim.base.errors import Diverged
from edgesim.config import DownloadConfig
from edgesim.learning.jobs import Arrived
from edgesim.learning.loss_passes import mean_losses
from edgesim.learning.public_copy import PublicCopy
from edgesim.streams import Streams

A = torch.tensor([1.0, 3.0], dtype=torch.float64)
B = torch.tensor([[1.0, 0.5], [-2.0, 1.0]], dtype=torch.float64)
"""Curvatures of two devices, and their optima; two steps of .1."""
FIXED_POINT = [-1.1857142857, 0.8642857143]


def models_by(config, rounds):
    """Models of FedAvg behind each round; devices begin with the copy, and the server adds their mean to its own."""
    model = torch.zeros(2, dtype=torch.float64)
    copy, models = PublicCopy(config, Streams(0), model, 2), []
    for version in range(1, rounds + 1):
        updates = [(1 - (1 - 0.1 * A[device]) ** 2) * (B[device] - copy.weights) for device in (0, 1)]
        model = model + torch.stack(updates).mean(0)
        copy.follow(model, version)
        models.append(model)
    return models


@pytest.mark.parametrize(
    ("config", "first"),
    [
        (DownloadConfig(codec="topk", ratio=0.5), [(-0.415, 0.3025), (-0.68475, 0.605), (-0.9545, 0.69575)]),
        (DownloadConfig(codec="sign"), [(-0.415, 0.3025), (-0.7044375, 0.4794375), (-0.912259375, 0.574759375)]),
    ],
    ids=["top 1", "sign"],
)
def test_the_server_ends_where_it_does_without_coding(config, first):
    models = models_by(config, 400)
    for model, numbers in zip(models, first, strict=False):
        assert model.tolist() == pytest.approx(numbers, abs=1e-6)
    assert models[-1].tolist() == pytest.approx(FIXED_POINT, abs=1e-6)


def test_what_was_lost_is_in_the_next_change():
    """Top 1 of four: after four changes of the same model the copy is the model."""
    model = torch.tensor([4.0, -3.0, 2.0, 1.0, 9.0])
    copy = PublicCopy(DownloadConfig(codec="topk", ratio=0.25), Streams(0), torch.zeros(5), 4)
    seen = []
    for version in range(1, 5):
        copy.follow(model, version)
        seen.append(copy.weights.tolist())
    # The fifth number is a buffer.
    assert seen == [[4, 0, 0, 0, 9], [4, -3, 0, 0, 9], [4, -3, 2, 0, 9], [4, -3, 2, 1, 9]]
    assert model.tolist() == [4, -3, 2, 1, 9]


def test_a_change_that_is_not_finite_is_told_of_the_download():
    copy = PublicCopy(DownloadConfig(codec="sign"), Streams(0), torch.zeros(3, dtype=torch.float64), 3)
    with pytest.raises(Diverged, match=r"^download\.codec: .* not finite in float32"):
        copy.follow(torch.full((3,), 1e39, dtype=torch.float64), 1)


def test_the_copy_begins_as_the_model_that_is_trained_before_the_first_round(make_learner):
    learning = {"pretrain": True, "pretrain_max_epochs": 1, "back_end": "loop"}
    learner = make_learner(download={"codec": "sign"}, learning=learning)
    untrained = learner.global_weights.clone()
    learner.prepare(lambda _: None)
    (promise,) = learner.open_round(1, 1).start(np.array([0]))
    assert not torch.equal(learner.global_weights, untrained)
    assert torch.equal(learner.public.weights, learner.global_weights)
    assert torch.equal(promise.job.start, learner.global_weights)


def test_devices_begin_with_the_copy_and_their_updates_enter_the_model(make_learner):
    learning = {"pretrain": False, "back_end": "loop", "precision": "float64"}
    learner = make_learner(download={"codec": "topk", "ratio": 0.1}, learning=learning)
    for number in (1, 2, 3):
        promise = begun(learner.open_round(number, 1), [number])[number]
        before, copy = learner.global_weights, learner.public.weights
        assert torch.equal(before, copy) == (number == 1)
        assert torch.equal(promise.job.start, copy)
        (result,) = learner.results([promise])
        learner.merge([Arrived(promise)], np.array([number]))
        assert torch.allclose(learner.global_weights, before + result.update, rtol=0, atol=1e-12)
        # The tenth of all numbers in which copy and model differed most follows the model.
        gap, moved = learner.global_weights - copy, learner.public.weights - copy
        followed = moved != 0
        assert int(followed.sum()) == math.ceil(0.1 * len(gap))
        assert torch.allclose(moved[followed], gap[followed], rtol=1e-6, atol=0)
        assert gap[followed].abs().min() >= gap[~followed].abs().max()
    losses = learner.open_round(4, 1).losses(np.array([0]))
    learner.model.load(learner.public.weights)
    expected = mean_losses(learner.model, learner.data, [learner.accounts.held.samples_of(0)], 1)
    assert losses.tolist() == expected.tolist()
    this = learner.open_round(5, 1)
    found = this.class_gradient_distances(np.arange(3), "all").distances
    learner.global_weights = learner.public.weights
    assert np.array_equal(this.class_gradient_distances(np.arange(3), "all").distances, found)
