"""What KPFL's server trains: its generator, and the model that learns from the pool by the images of that."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from contract import new_learner, two_frames
from kpfl_plays import config_of, merged_rounds, validated
from torch import nn

from edgesim.learning.algorithms.fedcl import FedCl
from edgesim.learning.algorithms.kpfl import _hits
from edgesim.learning.algorithms.records import State
from edgesim.learning.federation import make_federation
from edgesim.learning.generator import NOISE, ImageGenerator, Layers
from edgesim.learning.tensors import DeviceData
from edgesim.streams import Streams


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [((3, 32, 32), 129_155), ((1, 32, 32), 128_865), ((1, 28, 28), 101_985), ((1, 8, 8), 21_345), ((2, 7, 13), None)],
)
def test_generators_have_the_papers_size_and_make_images_of_any_shape(shape, parameters):
    maker = ImageGenerator(shape, 10, torch.zeros(1))
    assert parameters in (maker.parameters, None)
    noise, labels = torch.randn(6, NOISE), torch.arange(6)
    images = maker.images(maker.new(np.random.default_rng(0)), noise, labels)
    assert images.shape == (6, *shape)
    assert 0 < float(images.min()) < float(images.max()) < 1


@pytest.mark.parametrize(("levels", "scale", "top"), [(16, 16.0, 1.0), (255, 255.0, 1.0), (255, 127.5, 2.0)])
def test_a_made_image_is_as_bright_at_most_as_the_brightest_of_the_data_set(levels, scale, top):
    """Pixels of digits are from 0 to 16, others of a byte to 255; runs divide them by a scale."""
    dataset = replace(make_federation(config_of(), Streams(0)).dataset, fixed_scale=scale)
    if levels == 255:
        dataset = replace(dataset, brightest_uint8=255.0)
    data = DeviceData(dataset, torch.device("cpu"))
    made = data.of_brightness(torch.tensor([0.0, 0.5, 1.0]))
    assert made.flatten().tolist() == [0.0, top / 2, top]
    if levels == 16:
        images, _ = data.train(torch.arange(500))
        assert (float(images.min()), float(images.max())) == (0.0, 1.0)


OPTIONS = {
    **{"generator_steps": 3, "distil_steps": 2, "batch": 12, "T": 0.7, "age_active": 0.3, "age_idle": -0.4},
    **{"ce": 1.5, "contrast": 0.4, "diversity": 2.5},
}
"""All unlike each other and the defaults."""


def by_hand(learner, options, number, state, theta, adam, layers):
    """The model after a round's server training in plain PyTorch, on `Layers` and their Adam, which go on; and the
    largest norms of the generator's and of the model's gradients.

    Pixels of digits are from 0 to 1 as the mlp sees them.
    """
    pool, counts = state.pool, np.array([entry.class_counts for entry in state.pool.values()])
    raw = [np.exp(0.3 * entry.active if entry.active else -0.4 * entry.idle) for entry in pool.values()]
    by_class = np.array(raw)[:, None] / sum(raw) + counts / np.maximum(counts.sum(0), 1)
    by_class = torch.tensor(by_class / by_class.sum(0))
    random = learner.streams.generator("kpfl", round=number)

    def drawn():
        labels = random.choice(10, 12, p=counts.sum(0) / counts.sum())
        return torch.tensor(random.standard_normal((12, 100))), torch.tensor(labels)

    def net(weights, images):
        """The mlp: 64, 32 and 10 units."""
        into, bias, out, out_bias = weights.split([2048, 32, 320, 10])
        features = torch.relu(images.flatten(1) @ into.view(32, 64).T + bias)
        return features @ out.view(10, 32).T + out_bias, features

    def logs(logits, labels):
        return logits.log_softmax(1)[torch.arange(12), labels]

    norms = [0.0, 0.0]
    layers.train()
    for _ in range(3):
        noise, labels = drawn()
        adam.zero_grad()
        made = layers(noise, labels)
        teachers = [net(entry.model, made)[0] for entry in pool.values()]
        taught = -sum((by_class[row, labels] * logs(own, labels)).mean() for row, own in enumerate(teachers))
        features = net(theta, made)[1]
        there = sorted(set(labels.tolist()))
        centres = torch.stack([features.detach()[labels == label].mean(0) for label in there])
        alike = torch.cosine_similarity(features[:, None], centres[None], dim=2) / 0.7
        contrast = -logs(alike, torch.tensor([there.index(label) for label in labels.tolist()])).mean()
        flat = made.flatten(1)
        apart = (flat[:, None] - flat).abs().mean(2) * (noise[:, None] - noise).square().mean(2)
        loss = options["ce"] * taught + options["contrast"] * contrast + options["diversity"] * (-apart.mean()).exp()
        loss.backward()
        norms[0] = max(norms[0], float(torch.nn.utils.clip_grad_norm_(layers.parameters(), 10.0)))
        adam.step()
    layers.eval()
    asked = [drawn() for _ in range(2)]
    own = theta.clone().requires_grad_()
    sgd = torch.optim.SGD([own], 0.01, weight_decay=1e-5)
    for noise, labels in asked:
        with torch.no_grad():
            images = layers(noise, labels)
            teachers = torch.stack([net(entry.model, images)[0] for entry in pool.values()])
            target = (by_class[:, labels][..., None] * teachers).sum(0).softmax(1)
        sgd.zero_grad()
        (target * (target.log() - net(own, images)[0].log_softmax(1))).sum(1).mean().backward()
        norms[1] = max(norms[1], float(torch.nn.utils.clip_grad_norm_([own], 10.0)))
        sgd.step()
    return own.detach(), norms


@pytest.mark.parametrize(("strength", "clipped"), [(1.0, False), (4000.0, True)])
def test_what_the_server_trains_is_what_plain_pytorch_makes_of_the_same_draws(strength, clipped):
    """Three rounds in float64: Adam at 3e-4 with decay 1e-2 on the generator, SGD at .01 with decay 1e-5 on the model.

    Gradients are at most 10 long, as those of the generator are where its losses count much.
    """
    options = OPTIONS | {name: strength * OPTIONS[name] for name in ("ce", "contrast", "diversity")}
    learner = new_learner(config_of(options, precision="float64"))
    first = new_learner(config_of(options | {"keep": "first"}, precision="float64"))
    maker = ImageGenerator((1, 8, 8), 10, torch.zeros(1, dtype=torch.float64))
    start = maker.new(learner.streams.generator("kpfl-generator"))
    layers = Layers((1, 8, 8), 10).double()
    load(layers, start.weights[: maker.parameters])
    adam = torch.optim.Adam(layers.parameters(), 3e-4, weight_decay=1e-2)
    for number, ids in enumerate(((0, 1, 2), (2, 3), (0, 3)), 1):
        began = learner.global_weights
        (state,) = merged_rounds(learner, ids, first=number)
        # The same devices from the same model, whose pool is averaged and left at that.
        first.global_weights = began
        first.states = [replace(each, weights=began) for each in first.states]
        (alone,) = merged_rounds(first, ids, first=number)
        assert torch.equal(alone.pool[ids[0]].model, state.pool[ids[0]].model)
        expected, norms = by_hand(learner, options, number, state, alone.weights, adam, layers)
        torch.testing.assert_close(state.weights, expected, rtol=0, atol=1e-9)
        made = torch.cat([channels_last(parameter).flatten() for parameter in layers.parameters()]).detach()
        torch.testing.assert_close(state.generator.weights[: maker.parameters], made, rtol=0, atol=1e-9)
        moments = [torch.cat([norm.running_mean, norm.running_var]) for norm in of_kind(layers, nn.BatchNorm2d)]
        torch.testing.assert_close(state.generator.weights[maker.parameters :], torch.cat(moments), rtol=0, atol=1e-9)
        assert (norms[0] > 10) == clipped
        assert float((expected - alone.weights).abs().max()) > 1e-5


def of_kind(module, kind):
    return [layer for layer in module.modules() if isinstance(layer, kind)]


def channels_last(parameter):
    """Weights of convolutions [o, i, h, w] as [o, h, w, i], as vectors of weights have them; others as they are."""
    return parameter.movedim(1, -1) if parameter.dim() == 4 else parameter


def load(module, vector):
    """Give a module's parameters the numbers of a vector."""
    sizes = [parameter.numel() for parameter in module.parameters()]
    with torch.no_grad():
        for parameter, part in zip(module.parameters(), vector.split(sizes), strict=True):
            channels_last(parameter).copy_(part.view(channels_last(parameter).shape))


def test_the_distilled_model_is_taken_only_where_the_servers_own_images_say_so(monkeypatch):
    """Asked about the distilled model, then about the average; a tie is for the average."""
    taken = []
    for improved, average in ((8, 7), (7, 7)):
        hits = iter([improved, average])
        monkeypatch.setattr("edgesim.learning.algorithms.kpfl._hits", lambda bench, weights, hits=hits: next(hits))
        learner = new_learner(validated())
        state = merged_rounds(learner, (0, 1))[0]
        weights = state.shares
        mean = sum(share * entry.model for share, entry in zip(weights.tolist(), state.pool.values(), strict=True))
        taken.append(float((state.weights - mean).abs().max()) > 1e-5)
    assert taken == [True, False]


def test_hits_are_counted_on_images_that_no_device_has():
    learner = new_learner(validated())
    bench = learner._bench()
    assert len(bench.validation) == 20
    held = np.concatenate([learner.accounts.held.samples_of(device) for device in range(8)])
    assert not np.isin(bench.validation, held).any()
    learner.model.load(learner.global_weights)
    images, labels = learner.data.train(learner.data.index(bench.validation))
    learner.model.module.eval()
    expected = int((learner.model.module(images).argmax(1) == labels).sum())
    assert _hits(bench, learner.global_weights) == expected


def test_pool_and_generator_go_on_over_frames_while_cfeds_tasks_begin_anew():
    learner = new_learner(config_of(pair=("cfed", "own")), two_frames)
    merged_rounds(learner, (0, 1), (1, 2))
    learner.end_frame()
    learner.open_round(3, 2)
    state = learner.states[0]
    assert list(state.pool) == [0, 1, 2]
    assert state.generator.steps == 4
    assert state.inner.since == 3


def test_fedcls_omega_and_cfeds_teacher_are_of_the_distilled_model():
    """Of the model that devices get, not of the pool's average from which it was distilled."""
    omega = new_learner(config_of(pair=("fedcl", "own")))
    (state,) = merged_rounds(omega, (0, 1))
    weights = state.shares
    average = sum(share * entry.model for share, entry in zip(weights.tolist(), state.pool.values(), strict=True))
    omega.open_round(2, 1)
    plain = FedCl.Server(FedCl.Options(), omega.accounts.server.sizes, omega.streams)
    expected, other = (
        plain.prepare(State(model), omega._bench()).shared["omega"] for model in (state.weights, average)
    )
    torch.testing.assert_close(omega.states[0].shared["omega"], expected, rtol=1e-6, atol=0)
    assert float(((expected - other) / expected).abs().max()) > 1e-4
    teacher = new_learner(config_of(pair=("cfed", "own")))
    state = merged_rounds(teacher, (0, 1), (1, 2))[-1]
    promises = teacher.open_round(3, 1).start(np.arange(8))
    taught = [promise.job.given["teacher"] for promise in promises if len(promise.job.given.get("teacher", ()))]
    assert len(taught) == 3
    assert all(torch.equal(one, state.weights) for one in taught)
