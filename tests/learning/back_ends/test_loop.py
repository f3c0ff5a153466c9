import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from edgesim.errors import Diverged
from edgesim.learning import image_loader
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.local_sgd import moving_rms
from edgesim.learning.models import make_model
from edgesim.learning.trainer import Job, Promise


def _job(samples, edges, device=0, seed=1, lr=0.05, momentum=0.5, proximal=0.0, decay=0.0):
    return Job(device, 1, seed, np.array(samples), np.array(edges), lr, momentum, None, proximal, decay)


def _by_hand(module, data, job):
    """The plain way: a module, torch.optim.SGD and a loop."""
    module = copy.deepcopy(module).train()
    start = [parameter.detach().clone() for parameter in module.parameters()]
    optimiser = torch.optim.SGD(module.parameters(), lr=job.lr, momentum=job.momentum, weight_decay=job.weight_decay)
    losses, hits, square = [], [], None
    for first, last in zip(job.edges[:-1], job.edges[1:], strict=True):
        images, labels = data.train(torch.from_numpy(job.samples[first:last]))
        optimiser.zero_grad()
        logits = module(images)
        loss = F.cross_entropy(logits, labels)
        single = F.cross_entropy(logits.detach(), labels, reduction="none")
        newest = float((single**2).mean())
        square = newest if square is None else 0.8 * square + 0.2 * newest
        # The proximal term as part of the loss, where torch's own gradient does the work.
        away = sum((p - q).square().sum() for p, q in zip(module.parameters(), start, strict=True))
        (loss + job.proximal / 2 * away).backward()
        optimiser.step()
        losses += [loss.item()] * len(labels)
        hits += (logits.argmax(1) == labels).tolist()
    update = [after.detach() - before for after, before in zip(module.parameters(), start, strict=True)]
    return update, np.mean(losses), np.mean(hits), square**0.5


def test_the_moving_root_mean_square_of_losses_is_worked_by_hand():
    """Steps of mean squares 5 and 9: 5 + 0.2 (9 - 5) = 5.8; and a third of 0.8: 5.8 + 0.2 (0.8 - 5.8) = 4.8."""
    assert moving_rms(np.array([5.0])) == pytest.approx(5**0.5)
    assert moving_rms(np.array([5.0, 9.0])) == pytest.approx(5.8**0.5)
    assert moving_rms(np.array([5.0, 9.0, 0.8])) == pytest.approx(4.8**0.5)


def _mlp_world(make_dataset, make_flat, count=60):
    torch.manual_seed(0)
    module = make_model("mlp", (1, 4, 4), 3)
    flat, data = make_flat(copy.deepcopy(module), make_dataset(np.arange(count) % 3))
    return module, flat, data


@pytest.mark.parametrize(("proximal", "decay"), [(0.0, 0.0), (4.0, 0.0), (0.0, 0.5), (4.0, 0.5)])
def test_a_jobs_update_is_that_of_torchs_own_sgd(proximal, decay, make_dataset, make_flat):
    module, flat, data = _mlp_world(make_dataset, make_flat)
    job = _job(np.random.default_rng(0).integers(0, 60, 22), [0, 8, 16, 22], proximal=proximal, decay=decay)
    promise = Promise(job, flat.snapshot())
    LoopBackEnd(flat, data).run([promise])
    update, loss, accuracy, loss_rms = _by_hand(module, data, job)
    expected = torch.cat([part.reshape(-1) for part in update])
    torch.testing.assert_close(promise.result.update, expected, rtol=0, atol=1e-6)
    assert promise.result.loss == pytest.approx(loss, rel=1e-6)
    assert promise.result.accuracy == pytest.approx(accuracy)
    assert promise.result.loss_rms == pytest.approx(loss_rms, rel=1e-6)
    assert promise.result.update_norm == pytest.approx(float(expected.norm()), rel=1e-5)


def test_a_convolutional_update_agrees_with_torchs_own_sgd_in_size(make_dataset, make_flat):
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)
    )
    flat, data = make_flat(copy.deepcopy(module), make_dataset(np.arange(30) % 3, shape=(2, 6, 6)))
    job = _job(np.arange(24), [0, 8, 16, 24])
    promise = Promise(job, flat.snapshot())
    LoopBackEnd(flat, data).run([promise])
    update, loss, _, _ = _by_hand(module, data, job)
    flat.load(promise.start + promise.result.update)
    for mine, before, change in zip(flat.parameters(), module.parameters(), update, strict=True):
        torch.testing.assert_close(mine.detach(), before.detach() + change, rtol=1e-5, atol=1e-6)
    assert promise.result.loss == pytest.approx(loss, rel=1e-5)


def test_a_promise_not_asked_for_never_runs_and_one_asked_twice_runs_once(make_dataset, make_flat):
    _, flat, data = _mlp_world(make_dataset, make_flat)
    back_end = LoopBackEnd(flat, data)
    wanted, unused = (Promise(_job(np.arange(8), [0, 8], device), flat.snapshot()) for device in (0, 1))
    assert back_end.run([wanted]) == 1
    first = wanted.result
    assert back_end.run([wanted]) == 0
    assert wanted.result is first
    assert unused.result is None


def test_a_result_depends_on_the_job_and_not_on_what_ran_before(make_dataset, make_flat):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.ReLU(), nn.Dropout(0.5), nn.Linear(12, 3))
    flat, data = make_flat(module, make_dataset(np.arange(30) % 3))
    start = flat.snapshot()
    jobs = [_job(np.arange(16), [0, 8, 16], device, seed) for device, seed in ((0, 7), (1, 8), (2, 7))]

    def run(order):
        torch.manual_seed(len(order))
        promises = {n: Promise(jobs[n], start) for n in order}
        LoopBackEnd(flat, data).run(list(promises.values()))
        return {n: promise.result.update for n, promise in promises.items()}

    forward, backward, alone = run([0, 1, 2]), run([2, 1, 0]), run([1])
    for n in range(3):
        assert torch.equal(forward[n], backward[n])
    assert torch.equal(alone[1], forward[1])
    assert torch.equal(forward[0], forward[2]), "same samples, same seed: same dropout masks"
    assert not torch.equal(forward[0], forward[1]), "another seed: other dropout masks"


def test_training_leaves_torchs_generator_as_it_was(make_dataset, make_flat):
    _, flat, data = _mlp_world(make_dataset, make_flat)
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    LoopBackEnd(flat, data).run([Promise(_job(np.arange(8), [0, 8]), flat.snapshot())])
    assert torch.equal(torch.rand(3), expected)


def test_images_are_gathered_in_chunks_without_changing_the_update(make_dataset, make_flat, monkeypatch):
    _, flat, data = _mlp_world(make_dataset, make_flat)
    job = _job(np.arange(50), [0, 8, 16, 24, 32, 40, 48, 50])
    updates, start = [], flat.snapshot()
    for at_once in (2048 * 64, 17 * 64, 3 * 64):
        monkeypatch.setattr(image_loader, "_BYTES_AT_ONCE", at_once)
        promise = Promise(job, start)
        LoopBackEnd(flat, data).run([promise])
        updates.append(promise.result.update)
    assert torch.equal(updates[0], updates[1])
    assert torch.equal(updates[0], updates[2])


def test_a_loss_that_is_not_finite_names_device_round_and_step(make_dataset, make_flat):
    _, flat, data = _mlp_world(make_dataset, make_flat)
    job = _job(np.arange(60), np.arange(0, 61, 4), device=12, lr=1e30)
    with pytest.raises(Diverged, match=r"device 12, round 1, step [2-9]: .*lower learning.lr"):
        LoopBackEnd(flat, data).run([Promise(job, flat.snapshot())])
