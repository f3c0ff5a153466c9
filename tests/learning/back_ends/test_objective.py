"""Losses of an algorithm's own, which look at features, frozen teachers and what a job was given; and own gradients."""

from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from edgesim.learning import dropout
from edgesim.learning.algorithms.algorithm import AveragingOptions
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Phase, Sent, Sizes
from edgesim.learning.back_ends.layers import layer_by_layer
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.back_ends.probe import NotStackable, probe
from edgesim.learning.back_ends.stacked import StackedBackEnd
from edgesim.learning.jobs import Job, Optimiser, Promise
from edgesim.streams import Streams

SHAPE = (3, 16, 16)
EDGES = ([0, 8, 16, 20], [0, 8, 16, 20], [0, 6, 12], [0, 8, 15, 20])
LR = 0.1


def dense(*norm):
    """Without a normalisation over the batch, clients of different sizes share a stack."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(768, 6), *norm, nn.Tanh(), nn.Dropout(0.5), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4)
    )


def normalised():
    return dense(nn.BatchNorm1d(6))


def of_the_batch_in_evaluation_too():
    return dense(nn.BatchNorm1d(6, track_running_stats=False))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(784, 4)
    )


class Branched(nn.Module):
    """No chain of layers, so that it is stacked by `torch.func.vmap`."""

    def __init__(self):
        super().__init__()
        self.one, self.other = normalised(), convolutional()

    def forward(self, images):
        return self.one(images) - self.other(images)


BUILDS = (dense, normalised, of_the_batch_in_evaluation_too, convolutional, Branched)


class Taught(LocalHalf):
    """Cross-entropy, two teachers, features near a given centre, and a mean over the samples of class 0 alone."""

    teachers = ("start", "other")
    features = True

    def loss(self, step):
        """[n]; the part of a sample of class 0 is one over their number, as a mean over them would have it."""
        taught = F.log_softmax(step.teachers["other"].logits, 1)
        soft = taught.exp() * (taught - F.log_softmax(step.own.logits, 1))
        apart = (step.own.features - step.teachers["start"].features).square().mean(1)
        near = (step.own.features - step.given["centre"]).square().mean(1)
        of_zero = (step.labels == 0) * (step.share > 0)
        part = of_zero / (step.share * of_zero).sum().clamp_min(1e-9)
        return super().loss(step) + 0.7 * soft.sum(1) - 0.2 * apart + 0.3 * part * near


@pytest.fixture
def taught():
    return Taught(AveragingOptions(), Sizes(0.0, 0, 10), Streams(0))


def make(model, shared, augmented=True):
    """Jobs whose start, teacher and centre are one tensor for all, or one for each; every call makes the same."""
    random, drawn = np.random.default_rng(1), torch.Generator().manual_seed(3)

    def near(weights, far):
        noise = torch.rand(weights.shape, generator=drawn, dtype=torch.float64)
        return weights * (1 + far * noise.to(weights))

    def given():
        start = near(model.snapshot(), 0.3)
        centre = torch.rand(model.head.in_features, generator=drawn, dtype=torch.float64)
        return {"start": start, "other": near(start, 0.8), "centre": centre.to(start)}

    first, made = given(), []
    for n, edges in enumerate(EDGES):
        changes = random.integers(0, [2, 9, 9], (edges[-1], 3)) if augmented else None
        phase = Phase(random.integers(0, 96, edges[-1]), np.array(edges), changes)
        made.append(Promise(n, 1, Job(n, 1, n, (phase,), dict(first) if shared else given(), Optimiser(LR, 0.0))))
    return made


def by_hand(build, flat, data, job):
    """The update, with a network of its own for each teacher and the terms written out."""
    own, start, other = (flat(build, torch.float64) for _ in range(3))
    own.load(job.start)
    own.module.train()
    for teacher, name in ((start, "start"), (other, "other")):
        teacher.load(job.given[name])
        teacher.module.eval()

    def look(model, images):
        seen = []
        hook = model.head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        logits = model.module(images)
        hook.remove()
        return logits, seen[0]

    for step in range(len(job.edges) - 1):
        rows = slice(job.edges[step], job.edges[step + 1])
        images, labels = data.train(torch.from_numpy(job.samples[rows]), torch.from_numpy(job.changes[rows]))
        own.masks.begin(partial(dropout.key, job.seed, step))
        logits, features = look(own, own.inputs(images))
        with torch.no_grad():
            (_, from_start), (taught, _) = look(start, own.inputs(images)), look(other, own.inputs(images))
        loss = F.cross_entropy(logits, labels)
        soft = taught.softmax(1)
        loss = loss + 0.7 * (soft * (soft.log() - logits.log_softmax(1))).sum(1).mean()
        loss = loss - 0.2 * ((features - from_start) ** 2).mean()
        if (labels == 0).any():
            loss = loss + 0.3 * ((features[labels == 0] - job.given["centre"]) ** 2).mean()
        own.gradient.zero_()
        loss.backward()
        own.weights[: own.trainable] -= LR * own.gradient
    return own.weights - job.start


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("shared", [True, False], ids=["of all", "of each"])
def test_both_back_ends_train_on_it_with_teachers_in_evaluation_mode(build, shared, flat, data, taught):
    model = flat(build, torch.float64)
    alone, together = make(model, shared), make(model, shared)
    LoopBackEnd(model, data, taught).run(alone)
    StackedBackEnd(model, data, 4096, taught).run(together)
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(one.result.update, by_hand(build, flat, data, one.job), rtol=0, atol=1e-12)
        assert float((one.result.update - other.result.update).norm()) <= 1e-9 * one.result.update_norm
        assert other.result.loss == pytest.approx(one.result.loss, rel=1e-9)


def test_jobs_that_are_given_tensors_of_other_shapes_are_not_stacked_with_each_other(flat, data, taught):
    """A centre may be one number as well."""
    model = flat(dense, torch.float64)
    alone, together = make(model, False), make(model, False)
    for made in (alone, together):
        for promise in made[::2]:
            promise.job.given["centre"] = promise.job.given["centre"][:1]
    LoopBackEnd(model, data, taught).run(alone)
    StackedBackEnd(model, data, 4096, taught).run(together)
    for one, other in zip(alone, together, strict=True):
        assert float((one.result.update - other.result.update).norm()) <= 1e-9 * one.result.update_norm


@pytest.mark.parametrize("build", BUILDS)
def test_what_is_told_of_the_loss_is_cross_entropy_whatever_is_trained_on(build, flat, data, taught, averaging):
    """Of one step, so that both have trained on the same weights."""
    model = flat(build, torch.float64)
    one, other = make(model, True)[0], make(model, True)[0]
    for promise, algorithm in ((one, taught), (other, averaging)):
        phase = promise.job.phases[0]
        first = Phase(phase.samples[:8], phase.edges[:2], phase.changes[:8])
        promise.built = Job(0, 1, 0, (first,), promise.job.given, promise.job.optimiser)
        LoopBackEnd(model, data, algorithm).run([promise])
    assert one.result.loss == other.result.loss
    assert not torch.equal(one.result.update, other.result.update)


def test_teachers_that_a_stack_makes_otherwise_are_found_out_by_the_trial(flat):
    model = flat(normalised, torch.float64)
    chain = layer_by_layer(model)

    def always_training(tensors, keys, images, train=True):
        return chain({name: tensor.clone() for name, tensor in tensors.items()} if not train else tensors, keys, images)

    with pytest.raises(NotStackable, match="other results"):
        probe(model, always_training, SHAPE, features=True, frozen=True)
    probe(model, chain, SHAPE, features=True, frozen=True)


OWN = (np.arange(0, 11), np.arange(30, 53))
DECAY = 0.3


class Gradients(LocalHalf):
    """An algorithm whose devices send the gradient at their start, asked for twice."""

    def sent(self, trained):
        """Both passes, [trainable] each."""
        return Sent(up={"once": trained.gradient(), "again": trained.gradient()})


def own_gradient(flat, build, data, start, own):
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


@pytest.mark.parametrize("build", [normalised, convolutional, Branched])
@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_it_is_the_gradient_of_the_mean_loss_at_the_start_in_evaluation_mode(build, back_end, flat, data):
    model, random = flat(build, torch.float64), np.random.default_rng(2)
    algorithm = Gradients(AveragingOptions(), Sizes(0.0, model.trainable, 2), Streams(0))
    promises = []
    for device, own in enumerate(OWN):
        start = model.snapshot() + 0.1 * torch.from_numpy(random.random(len(model.weights)))
        changes = random.integers(0, [2, 9, 9], (10, 3))
        phase = Phase(random.choice(own, 10), np.array([0, 4, 8, 10]), changes)
        job = Job(device, 1, device, (phase,), {"start": start}, Optimiser(0.1, 0.9, DECAY), own)
        promises.append(Promise(device, 1, job))
    ends = {"loop": LoopBackEnd(model, data, algorithm), "stacked": StackedBackEnd(model, data, 512, algorithm)}
    ends[back_end].run(promises)
    plain = LoopBackEnd(flat(build, torch.float64), data, LocalHalf(AveragingOptions(), algorithm.sizes, Streams(0)))
    for promise, own in zip(promises, OWN, strict=True):
        found = own_gradient(flat, build, data, promise.job.start, own)
        for name in ("once", "again"):
            assert torch.allclose(promise.result.up[name], found, rtol=0, atol=1e-12), name
        # What was trained is what is trained without a pass.
        undisturbed = plain.train(promise.job).update
        assert float((promise.result.update - undisturbed).norm() / undisturbed.norm()) < 1e-9
