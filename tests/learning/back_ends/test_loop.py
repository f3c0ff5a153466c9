import copy
import dataclasses
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from edgesim.base.errors import Diverged
from edgesim.learning import image_loader
from edgesim.learning.algorithms.records import Phase
from edgesim.learning.back_ends.job_actor import JobActor
from edgesim.learning.back_ends.job_process import order_of, tensors_of
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.back_ends.stacked import StackedBackEnd
from edgesim.learning.jobs import Job, Optimiser, Promise
from edgesim.learning.models import make_model


def _promise(start, samples, edges, device=0, seed=1, lr=0.05, momentum=0.5, weight_decay=0.0, **given):
    phases, optimiser = (Phase(np.array(samples), np.array(edges)),), Optimiser(lr, momentum, weight_decay)
    return Promise(device, 1, Job(device, 1, seed, phases, {"start": start, **given}, optimiser))


def _by_hand(module, data, job, measured):
    """By a module, torch.optim.SGD and a loop; loss, accuracy and root mean square are of the steps measured."""
    module = copy.deepcopy(module).train()
    start = torch.nn.utils.parameters_to_vector(module.parameters()).detach().clone()
    rates = {name: getattr(job.optimiser, name) for name in ("lr", "momentum", "weight_decay")}
    optimiser = torch.optim.SGD(module.parameters(), **rates)
    losses, hits, square = [], [], None
    for first, last, told in zip(job.edges[:-1], job.edges[1:], measured, strict=True):
        images, labels = data.train(torch.from_numpy(job.samples[first:last]))
        optimiser.zero_grad()
        logits = module(images)
        single = F.cross_entropy(logits, labels, reduction="none")
        if told:
            newest = float((single.detach() ** 2).mean())
            square = newest if square is None else 0.8 * square + 0.2 * newest
            losses += single.tolist()
            hits += (logits.argmax(1) == labels).tolist()
        single.mean().backward()
        optimiser.step()
    update = torch.nn.utils.parameters_to_vector(module.parameters()).detach() - start
    return update, np.mean(losses), np.mean(hits), square**0.5


def _mlp_world(make_dataset, make_flat, count=60):
    torch.manual_seed(0)
    module = make_model("mlp", (1, 4, 4), 3)
    flat, data = make_flat(copy.deepcopy(module), make_dataset(np.arange(count) % 3))
    return module, flat, data


def test_two_phases_train_like_one_with_the_steps_of_both(make_dataset, make_flat, pulling):
    """With dropout, whose masks go by the step within the job, and momentum, which goes on."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.Dropout(0.5), nn.ReLU(), nn.Linear(12, 3))
    flat, data = make_flat(module, make_dataset(np.arange(60) % 3))
    samples, start = np.random.default_rng(0).integers(0, 60, 27), flat.snapshot()
    whole = _promise(start, samples, [0, 8, 12, 20, 27])
    phases = Phase(samples[:12], np.array([0, 8, 12])), Phase(samples[12:], np.array([0, 8, 15]))
    parts = Promise(0, 1, dataclasses.replace(whole.job, phases=phases))
    first = Promise(0, 1, dataclasses.replace(whole.job, phases=phases[:1]))
    LoopBackEnd(flat, data, pulling).run([whole, parts, first])
    assert torch.equal(whole.result.update, parts.result.update)
    assert (whole.result.loss, whole.result.loss_rms) == (parts.result.loss, parts.result.loss_rms)
    assert not torch.equal(first.result.update, parts.result.update)


OWN = Phase(np.arange(10, 30), np.array([0, 8, 16, 20]))
PUBLIC = Phase(np.arange(30, 42), np.array([0, 8, 12]), public=True)


@pytest.mark.parametrize("back_end", ["loop", "stacked"])
@pytest.mark.parametrize(
    ("phases", "measured"),
    [
        ((PUBLIC, OWN), [False, False, True, True, True]),
        ((OWN, PUBLIC, OWN), [True] * 3 + [False] * 2 + [True] * 3),
        ((OWN, PUBLIC), [True] * 3 + [False] * 2),
        ((PUBLIC,), [True, True]),
    ],
    ids=["before", "between", "after", "alone"],
)
def test_a_job_is_measured_on_own_samples_and_on_public_images_where_it_has_no_others(
    phases, measured, back_end, make_dataset, make_flat, averaging
):
    """Beside a job of own samples, and one of fewer steps."""
    module, flat, data = _mlp_world(make_dataset, make_flat)
    kinds = phases, (OWN,), (Phase(np.arange(8), np.array([0, 8])), PUBLIC)
    promises = [_promise(flat.snapshot(), [], [], device) for device in range(3)]
    for promise, of_job in zip(promises, kinds, strict=True):
        promise.built = dataclasses.replace(promise.job, phases=of_job)
    ends = {"loop": LoopBackEnd(flat, data, averaging), "stacked": StackedBackEnd(flat, data, 4096, averaging)}
    ends[back_end].run(promises)
    for promise, steps in zip(promises, (measured, [True] * 3, [True, False, False]), strict=True):
        update, *figures = _by_hand(module, data, promise.job, steps)
        assert torch.allclose(promise.result.update, update, atol=1e-6)
        assert promise.result.update_norm == pytest.approx(float(update.norm()), rel=1e-5)
        found = promise.result
        assert (found.loss, found.accuracy, found.loss_rms) == pytest.approx(figures, rel=1e-5)


def test_an_actor_has_the_bits_of_the_loop_from_an_order_and_tensors_that_come_apart(make_dataset, make_flat, pulling):
    _, flat, data = _mlp_world(make_dataset, make_flat)
    given = {"decay": torch.tensor(0.5), "shift": torch.linspace(0, 1, flat.trainable)}
    promise = _promise(flat.snapshot(), [], [], **given)
    # Only the steps on own samples are measured.
    promise.built = dataclasses.replace(promise.job, phases=(PUBLIC, OWN))
    actor = JobActor()
    actor._loop = LoopBackEnd(flat, data, pulling)
    order = pickle.loads(pickle.dumps(order_of(promise.job, ["start", "shift"])))
    update, rest = actor.train(order, ["start", "shift"], flat.snapshot().numpy(), given["shift"].numpy())
    LoopBackEnd(flat, data, pulling).run([promise])
    found, result = rest.result(torch.from_numpy(update), tensors_of), promise.result
    assert torch.equal(found.update, result.update)
    assert (found.loss, found.accuracy, found.update_norm) == (result.loss, result.accuracy, result.update_norm)
    assert {name: tensor.tolist() for name, tensor in found.keeps.items()} == {
        name: tensor.tolist() for name, tensor in result.keeps.items()
    }


def test_a_promise_not_asked_for_never_runs_and_one_asked_twice_runs_once(make_dataset, make_flat, averaging):
    _, flat, data = _mlp_world(make_dataset, make_flat)
    back_end = LoopBackEnd(flat, data, averaging)
    wanted, unused = (_promise(flat.snapshot(), np.arange(8), [0, 8], device) for device in (0, 1))
    assert back_end.run([wanted]) == 1
    first = wanted.result
    assert back_end.run([wanted]) == 0
    assert wanted.result is first
    assert unused.result is None


def test_a_result_depends_on_the_job_and_not_on_what_ran_before(make_dataset, make_flat, averaging):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.ReLU(), nn.Dropout(0.5), nn.Linear(12, 3))
    flat, data = make_flat(module, make_dataset(np.arange(30) % 3))
    start = flat.snapshot()

    def run(order):
        torch.manual_seed(len(order))
        promises = {n: _promise(start, np.arange(16), [0, 8, 16], n, (7, 8, 7)[n]) for n in order}
        LoopBackEnd(flat, data, averaging).run(list(promises.values()))
        return {n: promise.result.update for n, promise in promises.items()}

    forward, backward, alone = run([0, 1, 2]), run([2, 1, 0]), run([1])
    for n in range(3):
        assert torch.equal(forward[n], backward[n])
    assert torch.equal(alone[1], forward[1])
    assert torch.equal(forward[0], forward[2]), "same samples, same seed: same dropout masks"
    assert not torch.equal(forward[0], forward[1]), "another seed: other dropout masks"


def test_training_leaves_torchs_generator_as_it_was(make_dataset, make_flat, averaging):
    _, flat, data = _mlp_world(make_dataset, make_flat)
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    LoopBackEnd(flat, data, averaging).run([_promise(flat.snapshot(), np.arange(8), [0, 8])])
    assert torch.equal(torch.rand(3), expected)


def test_images_are_gathered_in_chunks_without_changing_the_update(make_dataset, make_flat, averaging, monkeypatch):
    _, flat, data = _mlp_world(make_dataset, make_flat)
    updates, start = [], flat.snapshot()
    for at_once in (2048 * 64, 17 * 64, 3 * 64):
        monkeypatch.setattr(image_loader, "_BYTES_AT_ONCE", at_once)
        promise = _promise(start, np.arange(50), [0, 8, 16, 24, 32, 40, 48, 50])
        LoopBackEnd(flat, data, averaging).run([promise])
        updates.append(promise.result.update)
    assert torch.equal(updates[0], updates[1])
    assert torch.equal(updates[0], updates[2])


def test_a_loss_that_is_not_finite_names_device_round_and_step(make_dataset, make_flat, averaging):
    _, flat, data = _mlp_world(make_dataset, make_flat)
    promise = _promise(flat.snapshot(), np.arange(60), np.arange(0, 61, 4), device=12, lr=1e30)
    with pytest.raises(Diverged, match=r"device 12, round 1, step [2-9]: .*lower learning.lr"):
        LoopBackEnd(flat, data, averaging).run([promise])
