"""Sums over the updates of a merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgesim.base.arrays import Floats
from edgesim.learning.algorithms.records import Arrivals
from edgesim.learning.torch_types import Tensor


def with_mean_buffers(parameters: Tensor, arrived: Arrivals) -> Tensor:
    """The model of trainable parameters [trainable] and the plain mean of the buffers that devices ended with, [P].

    For algorithms whose server corrects the trainable parameters alone.
    """
    import torch

    assert arrived.updates is not None
    size = len(parameters)
    if size == arrived.updates.shape[1]:
        return parameters
    ends = [start[size:] + update[size:] for start, update in zip(arrived.starts, arrived.separate, strict=True)]
    return torch.cat([parameters, torch.stack(ends).mean(0)])


def rebased(updates: Sequence[Tensor], starts: Sequence[Tensor], model: Tensor, trainable: int) -> Tensor:
    """Updates as rows, [S, P], whose buffers are those after the devices' training minus those of a model [P].

    A weighted mean of the rows, added to the model, then has the mean of the *values* of buffers, whichever models the
    updates started from. A mean of their changes would add those of other models: a running variance can become
    negative by it. Where all started from the model itself, rows are the updates.
    """
    import torch

    if not updates:
        return model.new_empty((0, len(model)))
    rows = torch.stack(list(updates))
    if trainable < len(model):
        rows[:, trainable:] += torch.stack([start[trainable:] for start in starts]) - model[trainable:]
    return rows


def mean_change(arrived: Arrivals, alpha: Floats, trainable: int | None = None) -> Tensor:
    """The sum of alpha_n times update n, [P], or without buffers, [trainable]; with the noise on it, if any."""
    assert arrived.updates is not None
    change = arrived.updates.new_tensor(alpha) @ arrived.updates[:, :trainable]
    if arrived.mean_noise is not None:
        change[: len(arrived.mean_noise)] += arrived.mean_noise
    return change


_STRETCH = 2**20
"""Numbers of a part that stays in a processor's last-level cache, 4 MB; sums of shorter parts are slower."""


def stretches(tensor: Tensor) -> Iterator[slice]:
    """Successive parts of a tensor [P] for sums of many tensors, which are added to one part before the next.

    The part's sum stays in the processor's cache, and each tensor is read from memory once. On an accelerator the whole
    tensor is one part.
    """
    length = _STRETCH if tensor.device.type == "cpu" else len(tensor)
    return (slice(start, start + length) for start in range(0, len(tensor), length))


def whole(tensor: Tensor) -> Tensor:
    """The tensor, or a copy where it keeps a larger one in memory: for tensors that outlive the round."""
    return tensor.clone() if tensor.untyped_storage().nbytes() > tensor.nbytes else tensor
