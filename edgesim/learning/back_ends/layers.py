"""The forward pass of a stack: layers of many clients as one layer each or, for any other module, mapped over them.

Activations of a stack are [n, S, ...]: rows of a batch first, then clients, so that clients and channels are neighbours
and a convolution of every client is one grouped convolution.
"""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import vmap

from edgesim.learning.algorithms.records import Outputs
from edgesim.learning.dense import chain_of
from edgesim.learning.dropout import MaskedDropout, Masks, noise
from edgesim.learning.flat import FlatModel

Tensors = Mapping[str, Tensor]
"""Weights of a stack by their names in the module, each [S, *shape]."""


class Forward(Protocol):
    """The forward pass of a stack."""

    def __call__(self, tensors: Tensors, keys: Tensor, images: Tensor, train: bool = True) -> Outputs:
        """Logits [n, S, classes] and features [n, S, F] of images [n, S, C, H, W].

        Keys of dropout masks are [S, calls, 2], and looked at in training mode alone; ``train`` says whether it is that
        or evaluation mode, in which weights of one client, each [1, *shape], may serve the images of all.
        """


Form = Callable[[Tensors, Tensor], Tensor]
"""Function of a stack's layer: from its weights by their names in the layer and activations to activations."""

_ELEMENTWISE = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Sigmoid, nn.Softplus,
    nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Identity,
)  # fmt: skip
_BY_CHANNEL = (nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
#: Layers up to which no job of the measurements that the README names went beyond 1e-6; with four, some went to 3e-2.
_SHALLOW = 3


def layer_by_layer(model: FlatModel, features: bool = False) -> Forward | None:
    """The forward pass of a chain of layers that all have a form for stacks; None for any other module.

    Without features unless they are wanted.
    """
    chain = chain_of(model.module)
    if chain is None:
        return None
    mixes = any(isinstance(layer, _BATCH_NORMS) and layer.running_mean is None for _, layer in chain)
    forms: list[tuple[Form, Form, dict[str, str], bool]] = []
    for prefix, layer in chain:
        form, frozen = (_form(layer, model.masks, train) for train in (True, False))
        own = {name: f"{prefix}.{name}" for name, _ in layer.named_parameters()}
        own |= {name: f"{prefix}.{name}" for name, buffer in layer.named_buffers() if buffer.is_floating_point()}
        if form is None or frozen is None or not set(own.values()) <= set(model.names):
            # A parameter that does not train, or that two layers share, is not under this name in the vector.
            return None
        forms.append((form, frozen, own, features and layer is model.head))

    def forward(tensors: Tensors, keys: Tensor, images: Tensor, train: bool = True) -> Outputs:
        clients, x, last_input = images.shape[1], images, None
        is_shared = next(iter(tensors.values())).shape[0] < clients
        if is_shared and mixes:
            tensors = {name: tensor.expand(clients, *tensor.shape[1:]) for name, tensor in tensors.items()}
        elif is_shared:
            x = x.flatten(0, 1).unsqueeze(1)
        model.masks.begin(lambda call: (keys[:, call, 0], keys[:, call, 1]))
        for form, frozen, own, is_head in forms:
            if is_head:
                last_input = x
            of_layer = dict(zip(own, map(tensors.__getitem__, own.values()), strict=True))
            x = (form if train else frozen)(of_layer, x)
        last_input = None if last_input is None else last_input.reshape(len(images), clients, -1)
        return Outputs(x.reshape(len(images), clients, *x.shape[2:]) if is_shared else x, last_input)

    return forward


def mapped(model: FlatModel, features: bool = False) -> Forward:
    """The forward pass of a stack for any module: `torch.func.vmap` over the clients' weights.

    Without features unless they are wanted. It raises RuntimeError where the module draws from torch's generator.
    """

    def of_client(tensors: Tensors, keys: Tensor, images: Tensor) -> tuple[Tensor, ...]:
        model.masks.begin(lambda call: (keys[call, 0], keys[call, 1]))
        if not features:
            return (model.call(tensors, images),)
        outputs = model.outputs(images, tensors)
        return outputs.logits, outputs.features

    def forward(tensors: Tensors, keys: Tensor, images: Tensor, train: bool = True) -> Outputs:
        model.module.train(train)
        is_shared = next(iter(tensors.values())).shape[0] < images.shape[1]
        if is_shared:
            tensors = {name: tensor[0] for name, tensor in tensors.items()}
        over_clients = vmap(of_client, in_dims=(None if is_shared else 0, 0, 1), out_dims=1, randomness="error")
        with warnings.catch_warnings():
            # Of operations that vmap can only run one client after another.
            warnings.filterwarnings("ignore", message="There is a performance drop")
            return Outputs(*over_clients(tensors, keys, images))

    return forward


def mixes_rows(model: FlatModel) -> bool:
    """Whether the rows of a batch depend on each other in some layer of a model."""
    return any(isinstance(layer, _BATCH_NORMS) for layer in model.module.modules())


def is_shallow_and_dense(module: nn.Module) -> bool:
    """Whether a module is a chain of at most three dense layers and as many normalisations, without convolutions.

    Of these a stack stays within 1e-3 of the loop in float32. Elsewhere rounding moves some value across the kink of a
    ReLU or the tie of a pooling sooner or later, and every further layer and step makes more of it: differences of some
    per cent, as large as those after a change of the start weights by one rounding.
    """
    with_weights = [layer for _, layer in chain_of(module) or [] if next(layer.parameters(), None) is not None]
    dense = [isinstance(layer, (nn.Linear, nn.Embedding)) for layer in with_weights]
    norms = [isinstance(layer, (*_BATCH_NORMS, nn.GroupNorm, nn.LayerNorm)) for layer in with_weights]
    return 0 < sum(dense) <= _SHALLOW and sum(norms) <= _SHALLOW and sum(dense) + sum(norms) == len(with_weights)


def _form(layer: nn.Module, masks: Masks, train: bool = True) -> Form | None:
    """The form of a layer for stacks, in training or in evaluation mode; None where there is none."""
    kind = type(layer)
    if kind in _ELEMENTWISE:
        return lambda _, x: layer(x)
    if kind in _BY_CHANNEL and not getattr(layer, "return_indices", False):
        return lambda _, x: _split_clients(layer(x.flatten(1, 2)), x.shape[1])
    if isinstance(layer, nn.Linear) and kind is nn.Linear:
        return linear
    if isinstance(layer, nn.Conv2d) and kind is nn.Conv2d and layer.padding_mode == "zeros":
        return partial(_conv2d, layer)
    if isinstance(layer, nn.GroupNorm) and kind is nn.GroupNorm:
        return partial(_group_norm, layer)
    if isinstance(layer, nn.LayerNorm) and kind is nn.LayerNorm:
        return partial(_layer_norm, layer)
    if isinstance(layer, _BATCH_NORMS) and kind in _BATCH_NORMS and layer.momentum is not None:
        return partial(_batch_norm, layer, train or layer.running_mean is None)
    if isinstance(layer, nn.Embedding) and kind is nn.Embedding and layer.max_norm is None:
        return None if layer.sparse or layer.scale_grad_by_freq else partial(_embedding, layer)
    if isinstance(layer, nn.Flatten) and kind is nn.Flatten and layer.start_dim >= 1:
        end = layer.end_dim + (layer.end_dim >= 0)
        return lambda _, x: x.flatten(layer.start_dim + 1, end)
    if isinstance(layer, MaskedDropout):
        return partial(_dropout, layer, masks) if train else lambda _, x: x
    return None


def _split_clients(x: Tensor, clients: int) -> Tensor:
    return x.view(len(x), clients, -1, *x.shape[2:])


def _all(tensor: Tensor | None) -> Tensor | None:
    """Tensors of all clients, [S, ...], concatenated along their first dimension."""
    return None if tensor is None else tensor.flatten(0, 1)


def linear(own: Tensors, x: Tensor) -> Tensor:
    """A linear layer of each client, of ``weight`` [S, out, in] and perhaps ``bias`` [S, out], on x [n, S, ..., in]."""
    weight = own["weight"].transpose(1, 2)
    rows = x.transpose(0, 1)
    if x.dim() > 3:
        rows = rows.flatten(1, -2)
    out = torch.baddbmm(own["bias"][:, None], rows, weight) if "bias" in own else torch.bmm(rows, weight)
    if x.dim() > 3:
        out = out.view(len(out), len(x), *x.shape[2:-1], -1)
    return out.transpose(0, 1)


def _conv2d(layer: nn.Conv2d, own: Tensors, x: Tensor) -> Tensor:
    weight, bias = own["weight"].flatten(0, 1), _all(own.get("bias"))
    groups = x.shape[1] * layer.groups
    # One padding for both kinds of argument: F.conv2d takes a word or numbers.
    out = F.conv2d(x.flatten(1, 2), weight, bias, layer.stride, layer.padding, layer.dilation, groups)  # type: ignore[arg-type]
    return _split_clients(out, x.shape[1])


def _group_norm(layer: nn.GroupNorm, own: Tensors, x: Tensor) -> Tensor:
    groups = x.shape[1] * layer.num_groups
    out = F.group_norm(x.flatten(1, 2), groups, _all(own.get("weight")), _all(own.get("bias")), layer.eps)
    return _split_clients(out, x.shape[1])


def _layer_norm(layer: nn.LayerNorm, own: Tensors, x: Tensor) -> Tensor:
    x = F.layer_norm(x, layer.normalized_shape, eps=layer.eps)  # type: ignore[arg-type]
    for name, operation in (("weight", torch.mul), ("bias", torch.add)):
        if name in own:
            between = x.dim() - 1 - own[name].dim()
            x = operation(x, own[name].reshape(x.shape[1], *[1] * between, *own[name].shape[1:]))
    return x


def _batch_norm(layer: nn.BatchNorm1d | nn.BatchNorm2d, of_batch: bool, own: Tensors, x: Tensor) -> Tensor:
    """Batch norm of a stack, with moments ``of_batch`` or with the running ones."""
    mean, variance, weight, bias = (_all(own.get(name)) for name in ("running_mean", "running_var", "weight", "bias"))
    assert layer.momentum is not None
    out = F.batch_norm(x.flatten(1, 2), mean, variance, weight, bias, of_batch, layer.momentum, layer.eps)
    return _split_clients(out, x.shape[1])


def _embedding(layer: nn.Embedding, own: Tensors, x: Tensor) -> Tensor:
    clients, rows = own["weight"].shape[:2]
    first = torch.arange(clients, device=x.device).mul_(rows).view(-1, *[1] * (x.dim() - 2))
    out = F.embedding(x + first, own["weight"].flatten(0, 1))
    if layer.padding_idx is None:
        return out
    # The row of padding is no function of the weights: it gets no gradient.
    return torch.where((x == layer.padding_idx)[..., None], out.detach(), out)


def _dropout(layer: MaskedDropout, masks: Masks, own: Tensors, x: Tensor) -> Tensor:
    if layer.p == 0:
        return x
    first, second = (torch.as_tensor(word).view(-1, *[1] * (x.dim() - 1)) for word in masks.next_key())
    mask = torch.Size((x.shape[0], *x.shape[2:]))
    return x * noise(mask, (first, second), layer.p, x).transpose(0, 1)
