"""FedGen: its numbers worked out elsewhere, a job and the server's training by a program of its own, and its bits."""

import hashlib
import math
import struct

import numpy as np
import pytest
import torch
from arriving import arrive
from contract import make_config, new_learner
from eight_weights import PUBLIC, START, THREE, Bench, check_sum
from quadratics import Play
from scipy.special import ndtri
from torch import nn
from torch.nn import functional

from edgesim.learning.algorithms.distillation import likeness
from edgesim.learning.algorithms.fedgen import FedGen, taught_by
from edgesim.learning.algorithms.records import Devices, Sizes, Step
from edgesim.learning.jobs import Arrived
from edgesim.streams import Streams

OUTPUTS = torch.tensor([[0.4, -0.2], [-0.3, 0.5]], dtype=torch.float64)
"""What the generator makes of class 0 and of class 1, whatever the noise."""


class ToldLocal(FedGen.Local):
    """Its generator's outputs and the classes that are drawn are given."""

    def latents(self, step):
        drawn = torch.tensor([0, 1])
        return OUTPUTS[torch.cat([drawn, step.labels])], drawn


class Told(FedGen):
    Local = ToldLocal


def told():
    return Play(Told, THREE, {"a_0": 1.0, "device_batch": 2}, START, lr=0.5, bench=Bench(PUBLIC, round=1))


def test_the_terms_of_a_device_are_those_worked_out_elsewhere():
    """Device 0 in round 2, from FedAvg's model of round 1: a_t = b_t = .98, and B_g / batch is 2 / 4."""
    play = told()
    play.round(0, 1)
    (job,) = play.begin(0)
    device, weights = THREE[0], play.state.weights
    assert check_sum(weights) == pytest.approx(5.5388701066, abs=1e-10)

    def mean_loss(counts):
        share, labels = torch.full((4,), 0.25), torch.tensor(device.labels)
        given = job.given | {"strengths": torch.tensor(counts, dtype=torch.float64)}
        step = Step(device.outputs(weights), {}, labels, share, given, lambda made: made @ weights.view(2, 2, 2)[1].T)
        return float(play.local.loss(step).mean())

    assert job.given["strengths"].tolist() == pytest.approx([0.98, 0.49], abs=1e-15)
    plain = mean_loss([0.0, 0.0])
    assert plain == pytest.approx(0.5807733978, abs=1e-10)
    assert mean_loss([1.0, 0.0]) - plain == pytest.approx(0.0084885518, abs=1e-10)
    assert mean_loss([0.0, 1.0]) - plain == pytest.approx(0.4921958891, abs=1e-10)
    assert mean_loss([0.98, 0.49]) == pytest.approx(0.8302681642, abs=1e-10)
    assert check_sum(weights + play._train(job).update) == pytest.approx(5.1881058761, abs=1e-10)
    without = Play(FedGen, THREE, {"a_0": 0.0}, START, lr=0.5, bench=Bench(PUBLIC))
    without.round(0, 1)
    assert check_sum(weights + without._train(*without.begin(0)).update) == pytest.approx(5.2305238430, abs=1e-10)


def test_the_objective_of_the_server_is_that_worked_out_elsewhere():
    play = told()
    models = [play.state.weights + play._train(job).update for job in play.begin(0, 1)]
    made = torch.tensor([[0.4, -0.2], [-0.3, 0.5], [-0.1, 0.6], [0.2, -0.4]], dtype=torch.float64, requires_grad=True)
    noise = torch.tensor([[0, 0], [1, -1], [0.5, 0.5], [-1, 0]], dtype=torch.float64)
    counts = torch.tensor([device.class_counts for device in THREE[:2]], dtype=torch.float64)
    taught = taught_by(Bench(PUBLIC).heads(models)(made), torch.tensor([0, 1, 1, 0]), counts / counts.sum(0))
    alike = likeness(made, noise)
    assert taught.item() == pytest.approx(0.5076953588, abs=1e-10)
    assert alike.item() == pytest.approx(0.6287242580, abs=1e-10)
    (gradient,) = torch.autograd.grad(taught + alike, made)
    assert float(gradient.norm()) == pytest.approx(0.4927819393, abs=1e-10)


@pytest.mark.parametrize(
    ("parameters", "features", "noise", "generator", "down"),
    [(4_903_242, 512, 64, 151_296, 161_745_216), (2410, 32, 32, 19_744, 708_928)],
    ids=["ResNet-10", "mlp on digits"],
)
def test_the_generator_travels_down_once_a_merge_has_trained_it(parameters, features, noise, generator, down):
    made = FedGen.Options(noise=noise), Sizes(32.0 * parameters, parameters, 3, 10, features), Streams(0)
    local, algorithm = FedGen.Local(*made), FedGen.Server(*made)
    devices = Devices(np.array([2, 0]), np.ones((3, 10), dtype=np.int64), np.full(3, 10))
    ledger = algorithm.ledger(1, None)
    assert algorithm.latent_sizes.parameters == generator
    assert algorithm.start(torch.zeros(5), None).generator.weights.shape == (generator,)
    plain = 32.0 * parameters
    assert algorithm.download_bits(devices, 1, ledger).tolist() == [plain] * 2
    algorithm.note(ledger, arrive(torch.empty(0, 5)))
    assert algorithm.download_bits(devices, 2, ledger).tolist() == [plain] * 2
    algorithm.note(ledger, arrive(torch.zeros(1, 5)))
    algorithm.note(ledger, arrive(torch.empty(0, 5)))
    assert algorithm.download_bits(devices, 4, ledger).tolist() == [down] * 2
    assert local.upload_bits(devices, 4, ledger).tolist() == [plain] * 2
    assert local.compute_factor(devices, np.array([10, 10]), 4, ledger).tolist() == [1.0, 1.0]


def test_without_any_arrival_there_is_no_generator_to_train_with():
    play = Play(FedGen, THREE, {}, START, lr=0.5, bench=Bench(PUBLIC))
    play.round()
    assert play.begin(0)[0].given.keys() == {"start"}
    play.round(2)
    before = play.state.generator
    assert play.begin(0)[0].given["generator"] is before.weights
    play.round()
    assert play.state.generator is before


def test_a_class_that_was_seen_once_stays_so_when_no_device_of_a_round_holds_it():
    """Device 1 holds class 1 alone, and device 2 class 0."""
    play = Play(FedGen, THREE, {"steps": 1}, START, lr=0.5, bench=Bench(PUBLIC))
    seen = []
    for device in (1, 2, 1):
        play.round(device)
        seen.append(play.begin(0)[0].given["seen"].tolist())
    assert seen == [[0, 1], [1, 1], [1, 1]]


@pytest.mark.parametrize(("round", "counts"), [(2, 0.98), (30, 0.98**29), (456, 0.98**455), (457, 1e-4), (900, 1e-4)])
def test_what_the_terms_count_falls_by_two_percent_a_round_to_a_ten_thousandth(round, counts):
    play = Play(FedGen, THREE, {"a_0": 1.0, "device_batch": 8}, START, lr=0.5, bench=Bench(PUBLIC))
    play.round(2)
    play.merged = round - 1
    (job,) = play.begin(0)
    assert job.given["strengths"].tolist() == pytest.approx([counts, 2 * counts], rel=1e-4)


# From here on: what a program of its own makes of the same draws. Its generator is of torch's modules, its hash of
# Python's integers, its normal draws of scipy's.


def uniforms(seed, step, number, count):
    """Uniforms of a step of a job: 23 bits of lowbias32, keyed by 64 bits of (seed, step)."""
    first, second = struct.unpack(
        "<II", hashlib.blake2b(struct.pack("<QII", seed, step, 2**32 - 1), digest_size=8).digest()
    )
    found = []
    for counter in range(number * 2**26, number * 2**26 + count):
        x = counter ^ first
        x ^= x >> 16
        x = x * 0x7FEB352D % 2**32
        x ^= x >> 15
        x = (x + second) * 0x846CA68B % 2**32
        x ^= x >> 16
        found.append(((x >> 9) + 0.5) / 2**23)
    return np.array(found)


def normals(seed, step, number, rows, size):
    return torch.tensor(ndtri(uniforms(seed, step, number, rows * size)).reshape(rows, size))


def as_module(weights, moments, noise, classes, features):
    """A generator of torch's layers; its batch norm has the moments."""
    net = nn.Sequential(nn.Linear(noise + classes, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, features))
    net = net.double()
    nn.utils.vector_to_parameters(weights.clone(), net.parameters())
    net[1].running_mean, net[1].running_var = moments[0].clone(), moments[1].clone()
    return net


def ask(net, noise, labels):
    return net(torch.cat([noise, functional.one_hot(labels, 10)], 1))


def mlp(weights):
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).double()
    nn.utils.vector_to_parameters(weights.clone(), net.parameters())
    return net


OPTIONS = {"a_0": 3.0, "device_batch": 5, "steps": 7, "batch": 6, "a_s": 2.0, "e_s": 0.5, "noise": 4}
ARRIVING = ([0, 3, 5], [1, 3])


@pytest.fixture(scope="module")
def after_two_rounds():
    """A learner, and of each round its jobs and what they brought."""
    config = make_config(("fedgen", "own"), options=OPTIONS, precision="float64", weight_decay=0.01, lr=0.2)
    learner, rounds = new_learner(config), []
    for number, ids in enumerate(ARRIVING, start=1):
        before = learner.open_round(number, 1)
        state, promises = learner.states[0], before.start(np.array(ids))
        for promise in promises:
            promise.due = True
        results = learner.results(promises)
        updates = [result.update.clone() for result in results]
        learner.merge([Arrived(promise) for promise in promises], np.array(ids))
        rounds.append((state, [promise.job for promise in promises], updates, learner.states[0]))
    learner.close()
    return learner, rounds


def test_a_whole_job_is_that_of_a_program_of_its_own(after_two_rounds):
    learner, ((_, _, _, state), (_, jobs, updates, _)) = after_two_rounds
    job, update = jobs[1], updates[1]
    seen = np.unique(
        np.concatenate([learner.dataset.train_labels[learner.federation.frames[1].clients[n]] for n in ARRIVING[0]])
    )
    assert 1 < len(seen) < 10
    generator = as_module(state.generator.weights, state.generator.moments, 4, 10, 32).eval()
    net, batch, strength = mlp(state.weights), learner.config.learning.batch_size, 3 * 0.98
    momentum = learner.config.learning.momentum
    sgd = torch.optim.SGD(net.parameters(), 0.2 * learner.config.learning.lr_decay, momentum, weight_decay=0.01)
    (own,) = job.phases
    for step, (first, last) in enumerate(zip(own.edges[:-1], own.edges[1:], strict=True)):
        images, labels = learner.data.train(torch.from_numpy(own.samples[first:last]))
        drawn = torch.from_numpy(seen[(uniforms(job.seed, step, 0, 5) * len(seen)).astype(int)])
        with torch.no_grad():
            noise = normals(job.seed, step, 1, 5 + len(labels), 4)
            target = functional.softmax(net[3](ask(generator, noise[5:], labels)), 1)
            made = ask(generator, noise[:5], drawn)
        logits = net(images)
        apart = (target * (target.log() - functional.log_softmax(logits, 1))).sum(1).mean()
        loss = functional.cross_entropy(logits, labels) + strength * apart
        loss = loss + strength * 5 / batch * functional.cross_entropy(net[3](made), drawn)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    found = nn.utils.parameters_to_vector(net.parameters()).detach() - state.weights
    assert float((found - update).norm()) < 1e-10 * float(update.norm())


def test_two_trainings_at_the_server_are_those_of_a_program_of_its_own(after_two_rounds):
    """Adam and the moments go on in the second round; only classes that arrived are asked for."""
    learner, rounds = after_two_rounds
    start = rounds[0][0].generator
    net = as_module(start.weights, start.moments, 4, 10, 32)
    bound = 1 / math.sqrt(14)
    assert bound * 0.99 < float(net[0].weight.detach().abs().max()) < bound
    assert float(net[1].weight.detach().min()) == float(net[1].weight.detach().max()) == 1.0
    adam = torch.optim.Adam(net.parameters(), 3e-4, weight_decay=1e-2)
    falls = torch.optim.lr_scheduler.ExponentialLR(adam, 0.98)
    for number, (state, _, updates, after) in enumerate(rounds, start=1):
        counts = learner.federation.frames[1].class_counts[ARRIVING[number - 1]]
        held = [label for label in range(10) if counts[:, label].any()]
        heads = [mlp(state.weights + update)[3] for update in updates]
        random = Streams(7).generator("fedgen-training", round=number)
        for _ in range(7):
            labels = torch.tensor([held[place] for place in random.integers(len(held), size=6)])
            noise = torch.from_numpy(random.standard_normal((6, 4)))
            made = ask(net, noise, labels)
            loss = torch.zeros((), dtype=torch.float64)
            for row, label in enumerate(labels.tolist()):
                for head, own in zip(heads, counts, strict=True):
                    ce = functional.cross_entropy(head(made[row]), labels[row])
                    loss = loss + 2.0 / 6 * own[label] / counts[:, label].sum() * ce
            pairs = [
                (made[a] - made[b]).abs().mean() * (noise[a] - noise[b]).square().mean()
                for a in range(6)
                for b in range(6)
            ]
            loss = loss + 0.5 * torch.exp(-torch.stack(pairs).mean())
            adam.zero_grad()
            loss.backward()
            adam.step()
        falls.step()
        found = nn.utils.parameters_to_vector(net.parameters()).detach()
        moved = float((after.generator.weights - start.weights).norm())
        assert float((found - after.generator.weights).norm()) < 1e-9 * moved
        assert torch.stack([net[1].running_mean, net[1].running_var]).numpy() == pytest.approx(
            after.generator.moments.numpy(), abs=1e-11
        )
        assert after.shared["generator"] is after.generator.weights
