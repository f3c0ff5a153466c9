"""Clipped gradients, momentum that lasts and Adam, in every back end."""

import copy
import dataclasses
import functools

import pytest
import torch
import torch.nn.functional as F

from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.back_ends.stacked import StackedBackEnd
from edgesim.learning.models import make_model

SHAPE, CLASSES = (3, 16, 16), 4
MLP = functools.partial(make_model, "mlp", SHAPE, CLASSES)
EDGES = ([0, 8, 16], [0, 8, 12], [0, 8, 16], [0, 3, 8, 10], [0, 8])
#: Of jobs whose gradients have norms on both sides of it.
CLIPPED = {"clip_norm": 4.0, "to_start": 2.0, "decay": 0.1, "shift": [0.0, 0.1, 0.2, 0.0, 0.3]}
SCALES = [1.0, 1.1, 1.0, 1.3, 1.0]


def _gradient(module, data, job, step, start):
    """Leaves in the module the gradient of cross-entropy and, as parts of the loss, every term of the pull."""
    module.zero_grad()
    rows = job.samples[job.edges[step] : job.edges[step + 1]]
    images, labels = data.train(torch.from_numpy(rows))
    flat = torch.cat([parameter.reshape(-1) for parameter in module.parameters()])
    to_start, decay = (float(job.given.get(name, 0.0)) for name in ("to_start", "decay"))
    loss = F.cross_entropy(module(images.to(flat.dtype)), labels) + decay / 2 * flat.square().sum()
    (loss + to_start / 2 * (flat - start).square().sum() + job.given.get("shift", 0 * start) @ flat).backward()


def _by_torch(module, optimiser, data, job):
    """The end of a job with an optimiser that may have run before, clipped as PyTorch does it."""
    torch.nn.utils.vector_to_parameters(job.start.clone(), module.parameters())
    for step in range(len(job.edges) - 1):
        _gradient(module, data, job, step, job.start)
        if job.optimiser.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(module.parameters(), job.optimiser.clip_norm)
        optimiser.step()
    return torch.nn.utils.parameters_to_vector(module.parameters()).detach()


def _sgd(module, job):
    rates = {name: getattr(job.optimiser, name) for name in ("lr", "momentum", "weight_decay")}
    return torch.optim.SGD(module.parameters(), **rates)


def _adam(module, job):
    return torch.optim.Adam(module.parameters(), job.optimiser.lr, weight_decay=job.optimiser.weight_decay)


@pytest.fixture(params=["loop", "stacked"])
def used(request, flat, data, pulling):
    """A model in float64 and a back end."""
    model = flat(MLP, torch.float64)
    alone = request.param == "loop"
    return model, LoopBackEnd(model, data, pulling) if alone else StackedBackEnd(model, data, 4096, pulling)


RATES = [0.01, 0.02, 0.005, 0.01, 0.03]


@pytest.mark.parametrize(
    ("by_torch", "how", "within"),
    [
        # PyTorch divides by the norm plus 1e-6.
        (_sgd, CLIPPED, 1e-6),
        (_adam, CLIPPED | {"clip_norm": None, "kind": "adam", "lr": 0.01}, 1e-12),
        (_adam, CLIPPED | {"clip_norm": None, "kind": "adam", "lr": RATES}, 1e-12),
    ],
    ids=["clipped SGD", "Adam", "Adam with rates of their own"],
)
def test_updates_are_those_of_torchs_optimisers_also_where_jobs_of_a_stack_end_at_different_steps(
    used, by_torch, how, within, data, promises
):
    model, back_end = used
    made = promises(model, *EDGES, scale=SCALES, weight_decay=0.2, **how)
    back_end.run(made)
    for promise in made:
        module = copy.deepcopy(MLP()).double().train()
        end = _by_torch(module, by_torch(module, promise.job), data, promise.job)
        torch.testing.assert_close(promise.result.update, end - promise.job.start, rtol=0, atol=within)


def test_a_norm_that_no_gradient_reaches_changes_no_bit_and_momentum_that_does_not_last_is_not_kept(used, promises):
    model, back_end = used
    plain, loose = promises(model, *EDGES), promises(model, *EDGES, clip_norm=1e6)
    back_end.run(plain)
    back_end.run(loose)
    assert all(torch.equal(one.result.update, other.result.update) for one, other in zip(plain, loose, strict=True))
    assert [promise.result.velocity for promise in plain] == [None] * len(EDGES)


def test_momentum_that_lasts_is_that_of_an_optimiser_that_lives_on_while_weights_are_overwritten(used, data, promises):
    model, back_end = used
    modules, optimisers, velocities = [copy.deepcopy(MLP()).double().train() for _ in EDGES], [], [None] * len(EDGES)
    for scale in (1.0, 1.2, 0.9):
        made = promises(model, *EDGES, scale=scale, momentum=0.9, weight_decay=0.1, persist_momentum=True, decay=0.1)
        for promise, velocity in zip(made, velocities, strict=True):
            promise.built = dataclasses.replace(promise.job, velocity=velocity)
        optimisers = optimisers or [_sgd(module, made[0].job) for module in modules]
        copies = [velocity if velocity is None else velocity.clone() for velocity in velocities]
        back_end.run(made)
        for promise, module, optimiser in zip(made, modules, optimisers, strict=True):
            end = _by_torch(module, optimiser, data, promise.job)
            torch.testing.assert_close(promise.result.update, end - promise.job.start, rtol=0, atol=1e-12)
            held = [optimiser.state[parameter]["momentum_buffer"].reshape(-1) for parameter in module.parameters()]
            torch.testing.assert_close(promise.result.velocity, torch.cat(held), rtol=0, atol=1e-12)
        # What a job was given stays as it was: another may begin with it.
        assert all(one is other or torch.equal(one, other) for one, other in zip(velocities, copies, strict=True))
        velocities = [promise.result.velocity for promise in made]
        assert all(velocity.untyped_storage().nbytes() == velocity.nbytes for velocity in velocities)
