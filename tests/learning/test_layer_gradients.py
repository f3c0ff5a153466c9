from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from edgesim.learning import layer_gradients
from edgesim.learning.flat import FlatModel
from edgesim.learning.layer_gradients import layers_with_rules, segment_gradients, segment_squares, watching
from edgesim.learning.torch_settings import reproducible

CPU = torch.device("cpu")
SIZES = [1, 4, 2]


def _flat(*layers, inputs=(3, 7, 6)):
    """A model in float64, with a last layer of 3 classes, and images and labels for it."""
    torch.manual_seed(0)
    body = nn.Sequential(*layers, nn.Flatten())
    module = nn.Sequential(*body, nn.Linear(body(torch.zeros(1, *inputs)).shape[1], 3)).double()
    images = torch.randn(sum(SIZES), *inputs, dtype=torch.float64)
    model = FlatModel(module, CPU)
    model.module.eval()
    return model, model.inputs(images), torch.arange(sum(SIZES)) % 3


def _by_hand(model, images, labels):
    """The gradient of every sample, [n, parameters], by a pass of its own."""
    rows = []
    for image, label in zip(images, labels, strict=True):
        loss = F.cross_entropy(model.module(model.inputs(image[None])), label[None])
        rows.append(torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, model.parameters())]))
    return torch.stack(rows)


def _agree(model, images, labels):
    layers = layers_with_rules(model, images[:1])
    assert layers is not None
    rows = _by_hand(model, images, labels)
    weights = torch.linspace(0.5, 2, len(rows), dtype=torch.float64)
    with watching(layers) as uses:
        squares, total = segment_squares(model, uses, images, labels, SIZES)
        found = segment_gradients(model, uses, images, labels, weights, SIZES)
    assert not any(layer._forward_hooks for layer in model.module.modules())
    parts = rows.split(SIZES)
    torch.testing.assert_close(squares, torch.stack([part.square().sum() for part in parts]))
    torch.testing.assert_close(total, torch.stack([part.sum(0).square().sum() for part in parts]))
    expected = torch.stack([part.sum(0) for part in (rows * weights[:, None]).split(SIZES)])
    # Each layer's parameters may lie in another order than those of autograd.
    torch.testing.assert_close(found.square().sum(1), expected.square().sum(1))
    torch.testing.assert_close(found @ found.T, expected @ expected.T)


@given(
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 1)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    bias=st.booleans(),
    at_once=st.sampled_from([1, 1 << 20]),
)
@settings(max_examples=25, deadline=None)
def test_a_convolution_of_any_geometry_has_the_gradients_of_one_pass_per_sample(
    kernel, stride, padding, dilation, bias, at_once
):
    layer = nn.Conv2d(3, 4, kernel, stride, padding, dilation, bias=bias)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layer_gradients, "_BYTES_IN_CACHE", at_once)
        _agree(*_flat(layer, nn.ReLU(inplace=True)))


class _Skips(nn.Module):
    """Two ways through, and both ways' sum changed in place."""

    def __init__(self):
        super().__init__()
        self.way, self.short, self.last = nn.Conv2d(2, 4, 3), nn.Conv2d(2, 4, 3, bias=False), nn.Linear(4, 3)

    def forward(self, images):
        out = self.way(images)
        out += self.short(images)
        return self.last(F.relu(out, inplace=True).mean((2, 3)))


def test_a_module_that_is_no_chain_has_them_too():
    torch.manual_seed(1)
    model = FlatModel(_Skips().double(), CPU)
    images = model.inputs(torch.randn(sum(SIZES), 2, 5, 5, dtype=torch.float64))
    _agree(model, images, torch.arange(sum(SIZES)) % 3)


class _Folds(nn.Module):
    """Rows of images as rows of a batch: a layer's rows are no samples."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, images):
        return self.layer(images.reshape(-1, 4)).view(len(images), -1, 3).mean(1)


class _Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, images):
        return self.layer(torch.tanh(self.layer(images.flatten(1))))


def _frozen():
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 4), nn.Linear(4, 3))
    module[1].bias.requires_grad_(False)
    return module


def _tied():
    module = nn.Sequential(nn.Flatten(), nn.Linear(16, 16), nn.Linear(16, 16))
    module[2].weight = module[1].weight
    return module


@pytest.mark.parametrize(
    "build",
    [
        _Folds,
        _Twice,
        _frozen,
        _tied,
        lambda: nn.Sequential(nn.Linear(4, 3), nn.Flatten()),
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding="same"), nn.Flatten()),
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"), nn.Flatten()),
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 1, groups=2), nn.Flatten()),
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 4), nn.GroupNorm(2, 4)),
        lambda: nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(16, 3)),
    ],
)
def test_what_has_no_rule_is_told(build):
    model = FlatModel(build(), CPU)
    model.module.eval()
    assert layers_with_rules(model, model.inputs(torch.zeros(1, 1, 4, 4))) is None


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12), st.lists(st.integers(1, 40), max_size=2), st.integers(0, 99)
)
def test_nets_of_linear_layers_have_the_bits_of_autograd_in_closed_form(sizes, hidden, seed):
    generator, rows = torch.Generator().manual_seed(seed), sum(sizes)
    widths = list(pairwise([12, *hidden, 5]))
    layers = [part for width in widths for part in (nn.Linear(*width), nn.ReLU())][:-1]
    images = torch.randn(rows, 3, 2, 2, generator=generator)
    labels, weights = torch.randint(0, 5, (rows,), generator=generator), torch.rand(rows, generator=generator)
    with reproducible(CPU), pytest.MonkeyPatch.context() as patch:
        model = FlatModel(nn.Sequential(nn.Flatten(), *layers), CPU)

        def measures():
            with watching(layers_with_rules(model, images[:1])) as uses:
                squares = segment_squares(model, uses, images, labels, sizes)
                return [*squares, segment_gradients(model, uses, images, labels, weights, sizes)]

        closed = measures()
        patch.setattr(layer_gradients, "dense_layers", lambda module: None)
        assert all(map(torch.equal, closed, measures()))
