"""FedDF: what the student is taught, by which teachers, in which steps and on which public images."""

import math

import numpy as np
import pytest
import torch
from arriving import arrive
from eight_weights import START, Bench, Holder

from edgesim.learning.algorithms.feddf import FedDf
from edgesim.learning.algorithms.records import Sizes, State
from edgesim.streams import Streams


class Watched(Bench):
    """Writes down the batches that it trains on."""

    def fit(self, weights, batches, loss, steps=None, clip_norm=None):
        self.batches_of_fit = [batch.tolist() for batch in batches]
        return super().fit(weights, batches, loss, steps, clip_norm)


def bench_of(count, scale=1.0, round=1):
    images = (scale * np.random.default_rng(5).normal(size=(count, 2))).tolist()
    return Watched(Holder(images, [0] * count), round=round)


def feddf(count, **options):
    return FedDf.Server(FedDf.Options(**options), Sizes(1.0, 8, 3, 2, public=count), Streams(7))


def net(weights, images):
    first, last = weights.view(2, 2, 2)
    return torch.tanh(torch.tensor(images, dtype=torch.float64) @ first.T) @ last.T


def distilled(student, teachers, images, batches, steps, T, lr, clip_norm):
    """Adam along half a cosine on KL(mean teacher, student), written out; and the norms of the gradients."""
    taught = torch.softmax(sum(net(teacher, images) for teacher in teachers) / len(teachers) / T, 1)
    first, second, norms = torch.zeros_like(student), torch.zeros_like(student), []
    for step, batch in enumerate(batches):
        student = student.detach().requires_grad_()
        told = torch.softmax(net(student, [images[place] for place in batch]) / T, 1)
        divergence = (taught[batch] * (taught[batch].log() - told.log())).sum() / len(batch)
        (gradient,) = torch.autograd.grad(divergence, student)
        norms.append(float(gradient.norm()))
        gradient = gradient * min(1.0, clip_norm / norms[-1])
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        change = first / (1 - 0.9 ** (step + 1)) / ((second / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8)
        student = student - lr * (1 + math.cos(math.pi * step / steps)) / 2 * change
    return student.detach(), norms


def test_each_teacher_is_its_own_start_plus_its_update_and_gradients_are_clipped_to_5():
    """Three devices of which one is late and started elsewhere; large images, so that some gradients are clipped. The
    oracle is told the batches and no more.
    """
    random = torch.Generator().manual_seed(1)

    def some(scale):
        return scale * torch.randn(8, generator=random, dtype=torch.float64)

    student = 0.01 * torch.tensor(START, dtype=torch.float64)
    student[4:] = torch.tensor([6.0, -5.0, -6.0, 5.0])
    starts, updates = [some(0.05), some(2.0), some(0.05)], torch.stack([some(1.0) for _ in range(3)])
    bench = bench_of(30, scale=4.0)
    options = {"steps": 9, "T": 1.5, "lr": 0.02, "batch": 7}
    found = feddf(30, **options).refine(State(student), arrive(updates, starts), None, bench).weights
    teachers = [start + update for start, update in zip(starts, updates, strict=True)]
    taught = student, teachers, bench.of.images, bench.batches_of_fit
    expected, norms = distilled(*taught, options["steps"], options["T"], options["lr"], clip_norm=5.0)
    # torch clips to a hair less, as it adds 1e-6 to the norm.
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-7)
    assert min(norms) < 5 < max(norms)
    assert float((found - student).norm()) > 0.1


def test_batches_pass_over_the_public_set_again_and_again_in_new_random_orders():
    """Of ten images and five batches of four: each is used once before any is used again."""
    orders = []
    for round in (1, 2, 2):
        bench = bench_of(10, round=round)
        state, arrived = (
            State(torch.tensor(START, dtype=torch.float64)),
            arrive(torch.rand((2, 8), dtype=torch.float64)),
        )
        feddf(10, steps=5, batch=4).refine(state, arrived, None, bench)
        assert [len(batch) for batch in bench.batches_of_fit] == [4] * 5
        places = np.concatenate(bench.batches_of_fit).tolist()
        orders += [places[:10], places[10:]]
    assert all(sorted(order) == list(range(10)) for order in orders)
    assert orders[2:4] == orders[4:]
    assert len({tuple(order) for order in [*orders[:4], range(10)]}) == 5
