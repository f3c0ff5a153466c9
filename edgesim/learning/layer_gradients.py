"""Gradients of single samples and of segments of a batch, by one forward and one backward pass for the whole batch.

A layer's gradient for some samples is made of its inputs and the gradients of its outputs, which a batched pass yields
for all samples at once (Goodfellow, "Efficient per-example gradient computations", 2015). Segments are rows of the
batch that lie together, such as a device's; ``sizes`` tells how many rows each has, [K].
"""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from edgesim.learning.dense import before_relu, cross_entropy_gradients, dense_layers
from edgesim.learning.flat import FlatModel
from edgesim.learning.passes import once_per_model
from edgesim.learning.weighted_gradients import weighted_gradients

#: Patches of images that a convolution sees, or gradients of them, held at once: few stay in the cache of a CPU.
_BYTES_IN_CACHE = 1 << 20
_BYTES_ON_GPU = 256 << 20

#: Dimensions of the inputs for which there are rules, a row per sample.
_DIMENSIONS: dict[type[nn.Module], tuple[int, ...]] = {nn.Linear: (2,), nn.Conv2d: (4,), nn.GroupNorm: (3, 4)}


@dataclass(frozen=True)
class Use:
    """Inputs and output of one call of a layer in a forward pass."""

    layer: nn.Module
    inputs: Tensor
    edge: GradientEdge
    """Edge of the layer's output, which later layers may change in place."""


class Uses(threading.local):
    """Calls of watched layers in the forward passes of the calling thread."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        self.layers = layers
        self.seen: list[Use] = []


@contextmanager
def watching(layers: Sequence[nn.Module]) -> Iterator[Uses]:
    """Record the calls of layers; passes may run on several threads meanwhile."""
    uses = Uses(layers)

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        uses.seen.append(Use(layer, inputs[0].detach(), get_gradient_edge(output)))

    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        yield uses
    finally:
        for hook in hooks:
            hook.remove()


@once_per_model
def layers_with_rules(model: FlatModel, image: Tensor) -> list[nn.Module] | None:
    """The layers that own the model's parameters, if this module has rules for their gradients; else None.

    Every one must be of a known kind, share no parameter, and be used once, usually and for the logits, on ``image``,
    [1, ...].
    """
    owners = [layer for layer in model.module.modules() if any(True for _ in layer.parameters(recurse=False))]
    return owners if have_rules(model, owners, image) else None


def have_rules(model: FlatModel, layers: Sequence[nn.Module], image: Tensor) -> bool:
    """Whether this module has rules for the gradients of these layers, as `layers_with_rules` requires."""
    held = Counter(id(own) for layer in model.module.modules() for own in layer.parameters(recurse=False))
    shared = any(held[id(own)] > 1 for layer in layers for own in layer.parameters(recurse=False))
    if shared or not all(map(_has_rule, layers)):
        return False
    with watching(layers) as uses:
        logits = model.module(image)
    usual = all(len(use.inputs) == 1 and use.inputs.dim() in _DIMENSIONS[type(use.layer)] for use in uses.seen)
    if not usual or sorted(id(use.layer) for use in uses.seen) != sorted(map(id, layers)):
        return False
    gradients = torch.autograd.grad(logits.sum(), [use.edge for use in uses.seen], allow_unused=True)
    return all(gradient is not None for gradient in gradients)


def _has_rule(layer: nn.Module) -> bool:
    if type(layer) not in _DIMENSIONS or not all(parameter.requires_grad for parameter in layer.parameters()):
        return False
    if isinstance(layer, nn.Conv2d):
        return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return not isinstance(layer, nn.GroupNorm) or layer.affine


def segment_gradients(
    model: FlatModel, uses: Uses, images: Tensor, labels: Tensor, weights: Tensor, sizes: list[int]
) -> Tensor:
    """Gradient of each segment's sum of losses, [K, parameters of the watched layers]; each loss has a weight, [n].

    At the loaded weights, module in the mode it is in.
    """
    passed, segments = _pass(model, uses, images, labels, weights), _Segments(sizes, images.device)
    return torch.cat([part for how in passed for part in _sums(*how, segments)], dim=1)


def segment_squares(
    model: FlatModel, uses: Uses, images: Tensor, labels: Tensor, sizes: list[int]
) -> tuple[Tensor, Tensor]:
    """Sum of the squared norms of the gradients of a segment's losses, and squared norm of their sum; each [K] float64.

    With respect to the parameters of the watched layers, at the loaded weights, module in the mode it is in.
    """
    single = torch.zeros(len(images), dtype=torch.float64, device=images.device)
    total = torch.zeros(len(sizes), dtype=torch.float64, device=images.device)
    segments = _Segments(sizes, images.device)
    for layer, inputs, out in _pass(model, uses, images, labels, torch.ones_like(labels, dtype=model.dtype)):
        if isinstance(layer, nn.Conv2d):
            squares, sums = _of_patches(layer, inputs, out, segments)
        else:
            squares, sums = _squares(layer, inputs, out), list(_sums(layer, inputs, out, segments))
        single += squares
        for part in sums:
            total += torch.linalg.vector_norm(part, dim=1, dtype=torch.float64).square()
    return segments.of(single).sum(1), total


def _pass(
    model: FlatModel, uses: Uses, images: Tensor, labels: Tensor, weights: Tensor
) -> Iterator[tuple[nn.Module, Tensor, Tensor]]:
    """Each watched layer with its inputs and the gradients of its outputs."""
    if (dense := dense_layers(model.module)) is not None:
        passed = _dense_pass([layer for _, layer in dense], images, labels, weights)
        yield from (how for how in passed if any(how[0] is layer for layer in uses.layers))
        return
    uses.seen.clear()
    losses = F.cross_entropy(model.module(images), labels, reduction="none")
    gradients = weighted_gradients(losses, weights, [use.edge for use in uses.seen])
    for use, out in zip(uses.seen, gradients, strict=True):
        yield use.layer, use.inputs, out
    uses.seen.clear()


@torch.no_grad()
def _dense_pass(
    layers: Sequence[nn.Linear], images: Tensor, labels: Tensor, weights: Tensor
) -> list[tuple[nn.Module, Tensor, Tensor]]:
    """`_pass` of all layers of a net of linear layers and ReLUs, in closed form."""
    x, passed = images.flatten(1), list[tuple[nn.Linear, Tensor]]()
    for layer in layers:
        x = torch.relu(x) if passed else x
        passed.append((layer, x))
        x = F.linear(x, layer.weight, layer.bias)
    _, out = cross_entropy_gradients(x, labels, weights)
    outs = [out]
    for layer, inputs in passed[:0:-1]:
        outs.append(before_relu(outs[-1].mm(layer.weight), inputs))
    return [(*use, out) for use, out in zip(passed, reversed(outs), strict=True)]


class _Segments:
    """How the rows of a batch are shared out over segments, one behind another."""

    def __init__(self, sizes: list[int], device: torch.device) -> None:
        """``sizes`` are the rows of each segment, [K]."""
        self.sizes, self._longest = sizes, max(sizes)
        self._places: Tensor | None = None
        if min(sizes) < self._longest:
            begins = np.arange(len(sizes)) * self._longest - np.cumsum([0, *sizes[:-1]])
            self._places = torch.from_numpy(np.arange(sum(sizes)) + np.repeat(begins, sizes)).to(device)

    def of(self, rows: Tensor) -> Tensor:
        """Rows [n, ...] as [K, longest segment, ...], filled up with zeros."""
        shape = len(self.sizes), self._longest, *rows.shape[1:]
        if self._places is None:
            return rows.view(shape)
        filled = rows.new_zeros(len(self.sizes) * self._longest, *rows.shape[1:])
        return filled.index_copy_(0, self._places, rows).view(shape)


def _sums(layer: nn.Module, inputs: Tensor, out: Tensor, segments: _Segments) -> Iterator[Tensor]:
    """Gradients of a layer's parameters summed over each segment, [K, size of the parameter]."""
    if isinstance(layer, nn.Linear):
        rows = segments.of(out)
        yield torch.bmm(rows.transpose(1, 2), segments.of(inputs)).flatten(1)
        if layer.bias is not None:
            yield rows.sum(1)
    elif isinstance(layer, nn.Conv2d):
        yield from _of_patches(layer, inputs, out, segments)[1]
    else:
        yield segments.of(_of_group_norm(layer, inputs, out)).sum(1)


def _squares(layer: nn.Module, inputs: Tensor, out: Tensor) -> Tensor:
    """Squared norm of each sample's gradient, [n]."""
    if isinstance(layer, nn.Linear):
        # The weight's gradient is an outer product: its squared norm is the product of the two.
        return out.square().sum(1) * (inputs.square().sum(1) + (layer.bias is not None))
    return _of_group_norm(layer, inputs, out).square().sum(1)


def _of_group_norm(layer: nn.Module, inputs: Tensor, out: Tensor) -> Tensor:
    """Gradient of each sample, [n, 2 channels]."""
    assert isinstance(layer, nn.GroupNorm)
    normal = F.group_norm(inputs, layer.num_groups, eps=layer.eps)
    return torch.cat([(out * normal).flatten(2).sum(2), out.flatten(2).sum(2)], dim=1)


def _of_patches(layer: nn.Conv2d, inputs: Tensor, out: Tensor, segments: _Segments) -> tuple[Tensor, list[Tensor]]:
    """`_squares` and `_sums` of a convolution, from the gradients of a few samples at a time."""
    patches = _patches(layer, inputs)
    image_bytes = max(patches[0].numel(), layer.weight.numel()) * patches.element_size()
    at_once = max(1, (_BYTES_ON_GPU if patches.is_cuda else _BYTES_IN_CACHE) // image_bytes)
    # Sums as a product with zeros and ones: to add rows by their index has no fixed order on a GPU.
    sizes = segments.sizes
    member = torch.eye(len(sizes)).repeat_interleave(torch.tensor(sizes), dim=0).to(out)
    sums = out.new_zeros(len(sizes), layer.weight.numel())
    squares = []
    parts = (torch.split(tensor, at_once) for tensor in (patches, out.flatten(2), member))
    for some, some_out, where in zip(*parts, strict=True):
        gradients = torch.bmm(some_out, some.flatten(3).flatten(1, 2)).flatten(1)
        squares.append(gradients.square().sum(1))
        sums.addmm_(where.T, gradients)
    if layer.bias is None:
        return torch.cat(squares), [sums]
    bias = out.flatten(2).sum(2)
    return torch.cat(squares) + bias.square().sum(1), [sums, segments.of(bias).sum(1)]


def _patches(layer: nn.Conv2d, inputs: Tensor) -> Tensor:
    """Patches that a convolution reads, [n, height, width, kernel height, kernel width, channels]: a view."""
    assert not isinstance(layer.padding, str)
    (pad_y, pad_x), (step_y, step_x), (gap_y, gap_x) = layer.padding, layer.stride, layer.dilation
    # Channels last: a row of the kernel is one piece of memory.
    padded = F.pad(inputs, (pad_x, pad_x, pad_y, pad_y)).contiguous(memory_format=torch.channels_last)
    spans = [gap * (size - 1) + 1 for gap, size in zip(layer.dilation, layer.kernel_size, strict=True)]
    windows = padded.permute(0, 2, 3, 1).unfold(1, spans[0], step_y).unfold(2, spans[1], step_x)
    return windows[..., ::gap_y, ::gap_x].movedim(3, -1)
