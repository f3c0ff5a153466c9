"""Chains of layers, and gradients of nets of linear layers in closed form: kernels and bits of torch's autograd."""

from itertools import cycle

import torch
from torch import Tensor, nn

_aten = torch.ops.aten
_REGISTER_BYTES = 64
_MANY = 128
"""Rows from which on it pays to turn logits round."""


def chain_of(module: nn.Module, prefix: str = "") -> list[tuple[str, nn.Module]] | None:
    """Layers of nested `nn.Sequential`, with the names of their places; None where the module is none."""
    if type(module) is not nn.Sequential:
        return None
    layers: list[tuple[str, nn.Module]] = []
    # Not `named_children`: a layer that stands in two places is there twice.
    for name, child in module._modules.items():
        assert child is not None
        inner = chain_of(child, f"{prefix}{name}.")
        layers += [(f"{prefix}{name}", child)] if inner is None else inner
    return layers


def dense_layers(module: nn.Module) -> list[tuple[str, nn.Linear]] | None:
    """Linear layers with a ReLU between successive ones, from all values of an image to logits, with their places.

    None where the module is anything else.
    """
    chain = chain_of(module) or []
    if len(chain) % 2 or not chain or type(chain[0][1]) is not nn.Flatten or chain[0][1].start_dim != 1:
        return None
    layers = [(place, layer) for place, layer in chain[1::2] if isinstance(layer, nn.Linear)]
    kinds = zip(chain[1:], cycle((nn.Linear, nn.ReLU)), strict=False)
    return layers if all(type(layer) is kind for (_, layer), kind in kinds) else None


def cross_entropy_gradients(logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy of each sample [n], and gradient with respect to the logits [n, C] of their sum by weights [n]."""
    (rows, classes), lanes = logits.shape, _REGISTER_BYTES // logits.element_size()
    if rows >= _MANY and classes < lanes and logits.device.type == "cpu":
        return _of_few_classes(logits, labels, weights, rows + -rows % lanes)
    log_shares = torch.log_softmax(logits, 1)
    losses, total = _aten.nll_loss_forward(log_shares, labels, None, 0, -100)
    gradients = _aten.nll_loss_backward(weights, log_shares, labels, None, 0, -100, total)
    return losses, _aten._log_softmax_backward_data(gradients, log_shares, 1, log_shares.dtype)


def _of_few_classes(logits: Tensor, labels: Tensor, weights: Tensor, padded: int) -> tuple[Tensor, Tensor]:
    """`cross_entropy_gradients` where the classes of a row do not fill a register of the processor.

    Kernels then go through rows value by value. With classes first, in ``padded`` columns, whole registers, they add
    the same values in the same order, in a fifth of the time.
    """
    rows, of_labels = len(logits), labels[None]
    turned = logits.new_zeros(logits.shape[1], padded)
    turned[:, :rows] = logits.T
    log_shares = torch.log_softmax(turned, 0)
    gradients = torch.zeros_like(log_shares).scatter_(0, of_labels, -weights[None])
    of_logits = _aten._log_softmax_backward_data(gradients, log_shares, 0, log_shares.dtype)
    return -log_shares.gather(0, of_labels)[0], of_logits[:, :rows].T.contiguous()


def before_relu(gradients: Tensor, outputs: Tensor) -> Tensor:
    """Gradient with respect to the inputs of a ReLU, given that of its outputs, of the same shape as these."""
    before: Tensor = _aten.threshold_backward(gradients, outputs, 0)
    return before
