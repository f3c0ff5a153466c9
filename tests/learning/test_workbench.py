"""What a server trains with, on a net with batch norm and beside plain torch."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from edgesim.config import LearningConfig
from edgesim.learning.flat import FlatModel
from edgesim.learning.tensors import DeviceData
from edgesim.learning.workbench import Workbench
from edgesim.streams import Streams

BATCHES = [np.array(batch) for batch in ([0, 3, 5, 8], [2, 1, 11], [9, 4, 10, 7])]


@pytest.fixture
def plain():
    """A net with batch norm, of float64, whose running moments are not those of its images."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3)).double()
    module[2].running_mean.fill_(0.7)
    module[2].running_var.fill_(3.0)
    return module


@pytest.fixture
def data(make_dataset):
    return DeviceData(make_dataset([0, 1, 2] * 4), torch.device("cpu"), torch.float64)


def bench(plain, data, round=3, **learning):
    """A workbench on a copy of a net, and the net's weights."""
    model = FlatModel(copy.deepcopy(plain), torch.device("cpu"))
    learning = LearningConfig(**learning)
    none = np.empty(0, dtype=np.int64)
    return Workbench(model, data, np.arange(12), none, None, Streams(0), learning, round, 1 << 30), model.snapshot()


def flat(module):
    """Parameters and then running mean and variance of a net, [P]."""
    tensors = [*module.parameters(), module[2].running_mean, module[2].running_var]
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


def trained(module, data, optimiser, schedule=None, clip_norm=None):
    """The weights of a net after steps on each batch in training mode."""
    module.train()
    for step, batch in enumerate(BATCHES):
        images, labels = data.train(torch.from_numpy(batch))
        optimiser.zero_grad()
        ((step + 1) * cross_entropy(module(images), labels)).backward()
        if clip_norm:
            nn.utils.clip_grad_norm_(module.parameters(), clip_norm)
        optimiser.step()
        if schedule:
            schedule.step()
    return flat(module)


def objective(data):
    """What `trained` takes the gradient of."""
    return lambda logits, step: (step + 1) * cross_entropy(logits, data.train_labels[BATCHES[step]])


OWN = {"lr": 0.2, "lr_decay": 0.5, "momentum": 0.9, "weight_decay": 0.1, "clip_norm": 0.4}
ADAM = {"lr": 0.02, "lr_decay": 1.0, "optimiser": "adam", "weight_decay": 0.1}


@pytest.mark.parametrize(
    ("learning", "by_torch", "clip_norm"),
    [
        (OWN, lambda parameters: torch.optim.SGD(parameters, 0.05, momentum=0.9, weight_decay=0.1), 0.4),
        (ADAM, lambda parameters: torch.optim.Adam(parameters, 0.02, weight_decay=0.1), None),
    ],
    ids=["SGD", "Adam"],
)
def test_fit_steps_in_training_mode_as_devices_do_in_this_round(plain, data, learning, by_torch, clip_norm):
    """In round 3 with decay 0.5 the learning rate is a quarter of 0.2; batches use and move batch norm's moments."""
    used, start = bench(plain, data, **learning)
    assert torch.equal(start, flat(plain))
    found = used.fit(start, BATCHES, objective(data))
    expected = trained(plain, data, by_torch(plain.parameters()), clip_norm=clip_norm)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert float((found - start)[-10:].abs().min()) > 1e-3


def test_fit_takes_an_optimiser_a_schedule_and_a_norm_in_the_place_of_the_devices_own(plain, data):
    def steps(parameters):
        adam = torch.optim.Adam(parameters, 0.03)
        return adam, torch.optim.lr_scheduler.CosineAnnealingLR(adam, 3)

    used, start = bench(plain, data, lr=0.2, momentum=0.9, clip_norm=1e-6)
    found = used.fit(start, BATCHES, objective(data), steps, clip_norm=0.5)
    expected = trained(plain, data, *steps(list(plain.parameters())), clip_norm=0.5)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_outputs_and_gradients_are_of_evaluation_mode_also_after_fit(plain, data):
    used, start = bench(plain, data)
    used.fit(start, BATCHES, objective(data))
    plain.eval()
    outputs, gradients = used.outputs(start, BATCHES), used.gradients(start, BATCHES)
    for batch, own in zip(BATCHES, outputs, strict=True):
        images, _ = data.train(torch.from_numpy(batch))
        torch.testing.assert_close(own.logits, plain(images), rtol=0, atol=1e-12)
        assert not own.logits.requires_grad
    for batch, found in zip(BATCHES, gradients, strict=True):
        images, labels = data.train(torch.from_numpy(batch))
        expected = torch.autograd.grad(cross_entropy(plain(images), labels), list(plain.parameters()))
        assert len(found) == len(expected) == 6
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
