"""Clipped gradients, momentum that lasts and Adam, in every back end."""

import contextlib
import copy
import dataclasses
import functools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.back_ends.stacked import StackedBackEnd
from edgesim.learning.back_ends.workers import WorkersBackEnd
from edgesim.learning.flat import FlatModel
from edgesim.learning.models import make_model, new_model
from edgesim.learning.torch_settings import reproducible

SHAPE, CLASSES = (3, 16, 16), 4
CPU = torch.device("cpu")
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


def _sgd(module, optimiser):
    rates = {name: getattr(optimiser, name) for name in ("lr", "momentum", "weight_decay")}
    return torch.optim.SGD(module.parameters(), **rates)


@pytest.mark.parametrize("stacked", [False, True])
def test_a_clipped_jobs_update_is_that_of_torchs_clipping_before_its_sgd(stacked, flat, data, promises, pulling):
    """PyTorch divides by the norm plus 1e-6."""
    model = flat(MLP, torch.float64)
    made = promises(model, *EDGES, scale=SCALES, weight_decay=0.2, **CLIPPED)
    back_end = StackedBackEnd(model, data, 4096, pulling) if stacked else LoopBackEnd(model, data, pulling)
    back_end.run(made)
    for promise in made:
        module = copy.deepcopy(MLP()).double().train()
        end = _by_torch(module, _sgd(module, promise.job.optimiser), data, promise.job)
        torch.testing.assert_close(promise.result.update, end - promise.job.start, rtol=0, atol=1e-6)


def test_a_norm_that_no_gradient_reaches_changes_no_bit(flat, data, promises, pulling):
    model = flat(MLP)
    for back_end in (LoopBackEnd(model, data, pulling), StackedBackEnd(model, data, 4096, pulling)):
        plain, loose = promises(model, *EDGES), promises(model, *EDGES, clip_norm=1e6)
        back_end.run(plain)
        back_end.run(loose)
        assert all(torch.equal(one.result.update, other.result.update) for one, other in zip(plain, loose, strict=True))


def _adam(module, optimiser):
    return torch.optim.Adam(module.parameters(), optimiser.lr, weight_decay=optimiser.weight_decay)


@pytest.mark.parametrize("lr", [0.01, [0.01, 0.02, 0.005, 0.01, 0.03]], ids=["one rate", "own rates"])
@pytest.mark.parametrize("stacked", [False, True])
def test_adam_is_torchs_also_where_jobs_of_a_stack_end_at_different_steps(stacked, lr, flat, data, promises, pulling):
    model = flat(MLP, torch.float64)
    made = promises(model, *EDGES, scale=SCALES, weight_decay=0.2, lr=lr, kind="adam", **CLIPPED | {"clip_norm": None})
    back_end = StackedBackEnd(model, data, 4096, pulling) if stacked else LoopBackEnd(model, data, pulling)
    back_end.run(made)
    for promise in made:
        module = copy.deepcopy(MLP()).double().train()
        end = _by_torch(module, _adam(module, promise.job.optimiser), data, promise.job)
        torch.testing.assert_close(promise.result.update, end - promise.job.start, rtol=0, atol=1e-12)


@contextlib.contextmanager
def _one_process(data, pulling):
    """A model, and a back end of one process that has started; until then this one would train."""
    build = functools.partial(new_model, "mlp", SHAPE, CLASSES, 5)
    model = FlatModel(build(), CPU)
    back_end = WorkersBackEnd(model, data, build, 1, pulling)
    try:
        while not back_end._workers[0].started:
            for worker in back_end._heard(None):
                back_end._receive(worker, {})
        with reproducible(CPU):
            yield model, back_end
    finally:
        back_end.close()


@pytest.mark.slow
def test_processes_bring_the_bits_of_the_loop_under_adam(data, promises, pulling):
    with _one_process(data, pulling) as (model, back_end):
        alone, spread = (promises(model, *EDGES, kind="adam", **CLIPPED) for _ in range(2))
        LoopBackEnd(model, data, pulling).run(alone)
        back_end.run(spread)
    assert all(torch.equal(one.result.update, other.result.update) for one, other in zip(alone, spread, strict=True))


@pytest.mark.parametrize("stacked", [False, True])
def test_momentum_that_lasts_is_that_of_an_optimiser_that_lives_on_while_weights_are_overwritten(
    stacked, flat, data, promises, pulling
):
    model = flat(MLP, torch.float64)
    back_end = StackedBackEnd(model, data, 4096, pulling) if stacked else LoopBackEnd(model, data, pulling)
    modules = [copy.deepcopy(MLP()).double().train() for _ in EDGES]
    optimisers = None
    for scale in (1.0, 1.2, 0.9):
        made = promises(model, *EDGES, scale=scale, momentum=0.9, weight_decay=0.1, persist_momentum=True, decay=0.1)
        if optimisers is None:
            optimisers = [_sgd(module, made[0].job.optimiser) for module in modules]
        else:
            for promise, velocity in zip(made, velocities, strict=True):  # noqa: F821 - of the turn before
                promise.built = dataclasses.replace(promise.job, velocity=velocity)
        before = [promise.job.velocity for promise in made]
        copies = [velocity if velocity is None else velocity.clone() for velocity in before]
        back_end.run(made)
        for promise, module, optimiser in zip(made, modules, optimisers, strict=True):
            end = _by_torch(module, optimiser, data, promise.job)
            torch.testing.assert_close(promise.result.update, end - promise.job.start, rtol=0, atol=1e-12)
            held = [optimiser.state[parameter]["momentum_buffer"].reshape(-1) for parameter in module.parameters()]
            torch.testing.assert_close(promise.result.velocity, torch.cat(held), rtol=0, atol=1e-12)
        # What a job was given stays as it was: another may begin with it.
        assert all(one is other or torch.equal(one, other) for one, other in zip(before, copies, strict=True))
        velocities = [promise.result.velocity for promise in made]
        assert all(velocity.untyped_storage().nbytes() == velocity.nbytes for velocity in velocities)


def test_devices_keep_no_velocity_unless_it_lasts(flat, data, promises, pulling):
    model = flat(MLP)
    for back_end in (LoopBackEnd(model, data, pulling), StackedBackEnd(model, data, 4096, pulling)):
        made = promises(model, *EDGES)
        back_end.run(made)
        assert [promise.result.velocity for promise in made] == [None] * len(EDGES)


@pytest.mark.slow
def test_processes_bring_the_bits_of_the_loop_and_its_velocities(data, promises, pulling):
    with _one_process(data, pulling) as (model, back_end):
        alone, spread = (promises(model, *EDGES, persist_momentum=True, **CLIPPED) for _ in range(2))
        for promise in (*alone, *spread):
            drawn = torch.from_numpy(np.random.default_rng(promise.device).normal(size=model.trainable)).float()
            if promise.device:
                promise.built = dataclasses.replace(promise.job, velocity=drawn)
        LoopBackEnd(model, data, pulling).run(alone)
        back_end.run(spread)
    for one, other in zip(alone, spread, strict=True):
        assert torch.equal(one.result.update, other.result.update)
        assert torch.equal(one.result.velocity, other.result.velocity)
