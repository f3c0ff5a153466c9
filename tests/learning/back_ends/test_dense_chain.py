from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from edgesim.learning.back_ends.dense_chain import DenseChain
from edgesim.learning.back_ends.layers import layer_by_layer
from edgesim.learning.flat import FlatModel
from edgesim.learning.torch_settings import reproducible

CPU = torch.device("cpu")


def chain(widths, bias=True):
    layers = [part for sizes in pairwise(widths) for part in (nn.Linear(*sizes, bias=bias), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *layers[:-1])


@settings(max_examples=80, deadline=None)
@given(
    clients=st.integers(1, 12),
    rows=st.integers(1, 33),
    classes=st.sampled_from([2, 5, 10, 20]),
    hidden=st.lists(st.integers(1, 40), max_size=2),
    bias=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 99),
)
def test_losses_and_gradients_have_the_bits_of_autograd(clients, rows, classes, hidden, bias, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    with reproducible(CPU):
        model = FlatModel(chain([12, *hidden, classes], bias).to(dtype), CPU)
        weights = torch.randn(clients, len(model.weights), generator=generator, dtype=dtype)
        images = torch.randn(rows, clients, 3, 2, 2, generator=generator, dtype=dtype)
        labels = torch.randint(0, classes, (rows * clients,), generator=generator)
        shares = torch.rand(rows * clients, generator=generator, dtype=dtype)
        # As a client whose batch is smaller has it.
        shares[::3] = 0
        leaves = [part.requires_grad_() for part in model.split(weights)]
        tensors = dict(zip(model.names, leaves, strict=True))
        losses, logits, gradients = DenseChain.of(model).gradients(tensors, images, labels, shares)
        outputs = layer_by_layer(model)(tensors, torch.empty(0), images).logits.flatten(0, 1)
        expected = F.cross_entropy(outputs, labels, reduction="none")
        of_autograd = torch.autograd.grad(expected @ shares, leaves)
    assert torch.equal(logits, outputs)
    assert torch.equal(losses, expected)
    assert all(map(torch.equal, gradients, of_autograd))
    assert not losses.requires_grad


def frozen():
    module = chain([12, 6, 5])
    module[1].bias.requires_grad_(False)
    return module


def shared():
    module = chain([6, 6, 6])
    module[3].weight = module[1].weight
    return module


@pytest.mark.parametrize(
    "module",
    [
        frozen(),
        shared(),
        nn.Sequential(nn.Linear(4, 5)),
        nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.ReLU()),
        nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)),
        nn.Sequential(nn.Flatten(2), nn.Linear(4, 5)),
        nn.Sequential(nn.Flatten(), nn.Linear(4, 5), nn.Linear(5, 2)),
    ],
)
def test_any_other_module_is_none(module):
    assert DenseChain.of(FlatModel(module, CPU)) is None
