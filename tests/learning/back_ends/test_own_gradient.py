"""The pass over a device's whole data set that `Trained.gradient` promises."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from edgesim.learning.algorithms.algorithm import AveragingOptions
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Phase, Sent, Sizes
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.back_ends.stacked import StackedBackEnd
from edgesim.learning.jobs import Job, Optimiser, Promise
from edgesim.streams import Streams

EDGES = np.array([0, 4, 8, 10])
OWN = (np.arange(0, 11), np.arange(30, 53))
DECAY = 0.3


class Gradients(LocalHalf):
    """An algorithm whose devices send the gradient at their start, asked for twice."""

    def sent(self, trained):
        """Both passes, [trainable] each."""
        return Sent(up={"once": trained.gradient(), "again": trained.gradient()})


def dense():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(768, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 4)
    )


def convolutional():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(784, 4))


class Branched(nn.Module):
    """No chain of layers, so that it is stacked by `torch.func.vmap`."""

    def __init__(self):
        super().__init__()
        self.one, self.other = dense(), dense()

    def forward(self, images):
        """Logits, [n, 4]."""
        return self.one(images) - self.other(images)


def expected(flat, build, data, start, own):
    """Of all samples at once, by autograd alone: running statistics, no dropout, no augmentation."""
    reference = flat(build, torch.float64)
    reference.load(start)
    reference.module.eval()
    images, labels = data.train(torch.from_numpy(own))
    loss = F.cross_entropy(reference.module(reference.inputs(images)), labels)
    # The vector holds the weights of convolutions channels-last, as `grad` of a parameter does not.
    reference.gradient.zero_()
    loss.backward()
    return reference.gradient + DECAY * start[: reference.trainable]


@pytest.mark.parametrize("build", [dense, convolutional, Branched])
@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_it_is_the_gradient_of_the_mean_loss_at_the_start_in_evaluation_mode(build, back_end, flat, data):
    model, random = flat(build, torch.float64), np.random.default_rng(2)
    algorithm = Gradients(AveragingOptions(), Sizes(0.0, model.trainable, 2), Streams(0))
    promises = []
    for device, own in enumerate(OWN):
        start = model.snapshot() + 0.1 * torch.from_numpy(random.random(len(model.weights)))
        changes = random.integers(0, [2, 9, 9], (10, 3))
        phase = Phase(random.choice(own, 10), EDGES, changes)
        job = Job(device, 1, device, (phase,), {"start": start}, Optimiser(0.1, 0.9, DECAY), own)
        promises.append(Promise(device, 1, job))
    ends = {"loop": LoopBackEnd(model, data, algorithm), "stacked": StackedBackEnd(model, data, 512, algorithm)}
    ends[back_end].run(promises)
    plain = LoopBackEnd(flat(build, torch.float64), data, LocalHalf(AveragingOptions(), algorithm.sizes, Streams(0)))
    for promise, own in zip(promises, OWN, strict=True):
        found = expected(flat, build, data, promise.job.start, own)
        for name in ("once", "again"):
            assert torch.allclose(promise.result.up[name], found, rtol=0, atol=1e-12), name
        # What was trained is what is trained without a pass.
        undisturbed = plain.train(promise.job).update
        assert float((promise.result.update - undisturbed).norm() / undisturbed.norm()) < 1e-9
