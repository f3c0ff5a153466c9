"""Norms of per-sample gradients without the gradients: one forward and one backward pass for a whole batch.

A layer's gradient for one sample is made of its input and the gradient of its output, which a batched pass yields
for all samples at once (Goodfellow, "Efficient per-example gradient computations", 2015).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from edgesim.learning.flat import FlatModel

#: Patches of a few images stay in memory that the allocator keeps; those of 32 are mapped anew each time.
_IMAGES_AT_ONCE = 8

#: Squared norm of each sample's gradient, [n], from (layer, input, gradient of the output).
Rule = Callable[[nn.Module, Tensor, Tensor], Tensor]


def _linear(layer: nn.Module, inputs: Tensor, out: Tensor) -> Tensor:
    # The weight's gradient is an outer product: its squared norm is the product of the two.
    return out.square().sum(1) * (inputs.square().sum(1) + (layer.bias is not None))


def _conv2d(layer: nn.Module, inputs: Tensor, out: Tensor) -> Tensor:
    assert isinstance(layer, nn.Conv2d)
    squares = []
    parts = (torch.split(tensor, _IMAGES_AT_ONCE) for tensor in (inputs, out.flatten(2)))
    for some, some_out in zip(*parts, strict=True):
        patches = F.unfold(some, layer.kernel_size, layer.dilation, layer.padding, layer.stride)  # type: ignore[arg-type]
        squares.append(torch.bmm(some_out, patches.transpose(1, 2)).square().sum((1, 2)))
    bias = 0.0 if layer.bias is None else out.flatten(2).sum(2).square().sum(1)
    return torch.cat(squares) + bias


def _group_norm(layer: nn.Module, inputs: Tensor, out: Tensor) -> Tensor:
    assert isinstance(layer, nn.GroupNorm)
    normal = F.group_norm(inputs, layer.num_groups, eps=layer.eps)
    return (out * normal).flatten(2).sum(2).square().sum(1) + out.flatten(2).sum(2).square().sum(1)


def _rule(layer: nn.Module) -> Rule | None:
    """The rule of a layer whose parameters all train and whose input has the usual shape; else None."""
    if not all(parameter.requires_grad for parameter in layer.parameters()):
        return None
    if type(layer) is nn.Linear:
        return _linear
    if type(layer) is nn.Conv2d and layer.groups == 1 and layer.padding_mode == "zeros":
        return None if isinstance(layer.padding, str) else _conv2d
    return _group_norm if type(layer) is nn.GroupNorm and layer.affine else None


def squared_gradient_norms(model: FlatModel, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor] | None:
    """Squared norms of the samples' gradients, [n], and the sum of the gradients, [trainable]; both float64.

    At the loaded weights, module in the mode it is in. None where some layer has no rule, is used more than once,
    or shares its parameters: then only gradients themselves tell.
    """
    owners = [layer for layer in model.module.modules() if any(True for _ in layer.parameters(recurse=False))]
    rules = [_rule(layer) for layer in owners]
    held = [id(parameter) for layer in owners for parameter in layer.parameters(recurse=False)]
    if None in rules or len(set(held)) < len(held):
        return None
    seen: list[tuple[Rule, nn.Module, Tensor, Tensor]] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        rule = rules[owners.index(layer)]
        assert rule is not None
        seen.append((rule, layer, inputs[0].detach(), output))
        # A ReLU that works in place behind the layer would change what the gradient is taken of.
        return output.clone()

    hooks = [layer.register_forward_hook(note) for layer in owners]
    try:
        loss = F.cross_entropy(model.module(images), labels, reduction="sum")
    finally:
        for hook in hooks:
            hook.remove()
    usual = all(inputs.dim() == 2 for rule, _, inputs, _ in seen if rule is _linear)
    if not usual or len(seen) != len(owners):
        return None
    outputs = [output for *_, output in seen]
    gradients = torch.autograd.grad(loss, [*outputs, *model.parameters()])
    squares = torch.zeros(len(images), dtype=torch.float64, device=images.device)
    for (rule, layer, inputs, _), out in zip(seen, gradients, strict=False):
        squares += rule(layer, inputs, out)
    total = torch.cat([gradient.reshape(-1) for gradient in gradients[len(outputs) :]])
    return squares, total.double()
