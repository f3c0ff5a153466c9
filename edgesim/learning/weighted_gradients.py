"""Gradients of weighted sums of losses."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge


def weighted_gradients(
    losses: Tensor, weights: Tensor, of: Sequence[Tensor | GradientEdge], **how: bool
) -> tuple[Tensor, ...]:
    """Gradients of the sum of losses [n], each times its weight [n], with respect to each tensor of ``of``.

    ``how`` are further arguments of `torch.autograd.grad`. The bits are those with the weights as its ``grad_outputs``.
    """
    # Given ``grad_outputs``, torch imports SymPy to compare shapes, which takes longer than many a run.
    return torch.autograd.grad(torch.dot(losses, weights), of, **how)  # type: ignore[call-overload,no-any-return]
