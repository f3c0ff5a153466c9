"""Every stacked form beside the layer it stands for: activations, gradients and buffers, in float64."""

import copy

import pytest
import torch
from torch import nn

from edgesim.learning import dropout
from edgesim.learning.back_ends.layers import _form, layer_by_layer
from edgesim.learning.flat import FlatModel

ROWS, CLIENTS = 5, 3

_IMAGES = (4, 6, 6)
LAYERS = [
    (nn.Linear(7, 3), (7,)),
    (nn.Linear(7, 3, bias=False), (7,)),
    (nn.Linear(7, 3), (2, 4, 7)),
    (nn.Conv2d(4, 6, 3, padding=1), _IMAGES),
    (nn.Conv2d(4, 6, (3, 2), stride=2, dilation=2, bias=False), _IMAGES),
    (nn.Conv2d(4, 6, 3, groups=2, padding="same"), _IMAGES),
    (nn.GroupNorm(2, 4), _IMAGES),
    (nn.GroupNorm(2, 4, affine=False), _IMAGES),
    (nn.LayerNorm((6, 6)), _IMAGES),
    (nn.LayerNorm(7, bias=False), (7,)),
    (nn.LayerNorm(7, elementwise_affine=False), (3, 7)),
    (nn.BatchNorm2d(4), _IMAGES),
    (nn.BatchNorm2d(4, momentum=0.3, affine=False), _IMAGES),
    (nn.BatchNorm1d(7), (7,)),
    (nn.BatchNorm1d(7, track_running_stats=False), (7,)),
    (nn.MaxPool2d(2), _IMAGES),
    (nn.AvgPool2d(3, 2, 1), _IMAGES),
    (nn.AdaptiveAvgPool2d((2, 1)), _IMAGES),
    (nn.AdaptiveMaxPool2d(2), _IMAGES),
    (nn.Flatten(), _IMAGES),
    (nn.Flatten(2, 3), _IMAGES),
    (nn.ReLU(), (7,)),
    (nn.ReLU(inplace=True), _IMAGES),
    (nn.GELU(), (7,)),
    (nn.Identity(), (7,)),
]


@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=lambda value: str(value))
def test_a_stacked_layer_computes_what_each_client_would(layer, shape):
    random = torch.Generator().manual_seed(3)

    def draw(*size):
        return torch.randn(*size, generator=random, dtype=torch.float64)

    clients = [copy.deepcopy(layer).double().train() for _ in range(CLIENTS)]
    for client in clients:
        for tensor in client.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(draw(*tensor.shape).abs())
    x = draw(ROWS, CLIENTS, *shape)
    stacked = {
        name: torch.stack([client.state_dict()[name] for client in clients])
        for name, tensor in clients[0].state_dict().items()
        if tensor.is_floating_point()
    }
    trainable = {name: stacked[name].requires_grad_() for name, _ in clients[0].named_parameters()}
    together, apart = x.clone().requires_grad_(), x.clone().requires_grad_()
    out = _form(layer, dropout.Masks())(stacked, together.clone())
    expected = torch.stack([client(apart[:, n].clone()) for n, client in enumerate(clients)], dim=1)
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-12)
    weight = draw(*out.shape)
    (out * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(together.grad, apart.grad, rtol=1e-11, atol=1e-11)
    for name, tensor in trainable.items():
        own = torch.stack([client.get_parameter(name).grad for client in clients])
        torch.testing.assert_close(tensor.grad, own, rtol=1e-11, atol=1e-11)
    for name in stacked.keys() - trainable.keys():
        own = torch.stack([client.state_dict()[name] for client in clients])
        torch.testing.assert_close(stacked[name], own, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("padding_idx", [None, 2])
def test_a_stacked_embedding_looks_up_each_clients_own_rows(padding_idx):
    layer = nn.Embedding(9, 4, padding_idx=padding_idx).double()
    clients = [nn.Embedding(9, 4, padding_idx=padding_idx).double() for _ in range(CLIENTS)]
    words = torch.randint(9, (ROWS, CLIENTS, 6), generator=torch.Generator().manual_seed(1))
    weight = torch.stack([client.weight.detach() for client in clients]).requires_grad_()
    out = _form(layer, dropout.Masks())({"weight": weight}, words)
    expected = torch.stack([client(words[:, n]) for n, client in enumerate(clients)], dim=1)
    assert torch.equal(out, expected)
    scale = torch.rand(out.shape, dtype=torch.float64)
    (out * scale).sum().backward()
    (expected * scale).sum().backward()
    torch.testing.assert_close(weight.grad, torch.stack([client.weight.grad for client in clients]))


class _Own(nn.Linear):
    """A layer of the user's own that behaves otherwise than the one it is made from."""

    def forward(self, x):
        return -super().forward(x)


def _tied():
    first = nn.Linear(8, 8)
    return nn.Sequential(first, nn.ReLU(), first)


def _frozen():
    module = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))
    module[0].requires_grad_(False)
    return module


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(8, 8), _Own(8, 2)),
        nn.Sequential(nn.Linear(8, 2), nn.Softmax(dim=1)),
        nn.Sequential(nn.Linear(8, 2), nn.Dropout1d(0.5)),
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), nn.Flatten(), nn.Linear(4, 2)),
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=None), nn.Flatten(), nn.Linear(4, 2)),
        nn.ModuleList([nn.Linear(8, 2)]),
        _tied(),
        _frozen(),
    ],
    ids=["subclass", "softmax", "dropout1d", "reflect", "cumulative", "no chain", "tied", "frozen"],
)
def test_a_module_with_anything_unusual_in_it_is_no_chain(module):
    assert layer_by_layer(FlatModel(module, torch.device("cpu"))) is None


def test_nested_sequentials_are_one_chain():
    module = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(8, 4), nn.Sequential(nn.ReLU())), nn.Linear(4, 2))
    assert layer_by_layer(FlatModel(module, torch.device("cpu"))) is not None
