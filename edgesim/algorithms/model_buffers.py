"""Buffers of a model, such as the moments of batch norm, where the server corrects the trainable parameters alone."""

from typing import TYPE_CHECKING

from edgesim.algorithms.algorithm import Arrivals
from edgesim.arrays import Floats

if TYPE_CHECKING:
    from torch import Tensor


def with_mean_buffers(parameters: "Tensor", arrived: Arrivals) -> "Tensor":
    """The model of trainable parameters [trainable] and the plain mean of the buffers that devices ended with, [P].

    A mean of values, not of changes: a stale change added to a running variance can make it negative.
    """
    import torch

    assert arrived.updates is not None
    size = len(parameters)
    ends = [start[size:] + update[size:] for start, update in zip(arrived.starts, arrived.updates, strict=True)]
    return torch.cat([parameters, torch.stack(ends).mean(0)])


def mean_change(arrived: Arrivals, alpha: Floats, trainable: int) -> "Tensor":
    """The sum of alpha_n times update n without buffers, [trainable]."""
    assert arrived.updates is not None
    return arrived.updates.new_tensor(alpha) @ arrived.updates[:, :trainable]
