"""Adam whose state is saved between trainings and restored."""

from collections.abc import Sequence

import torch
from torch import Tensor


def restored_adam(
    parameters: Sequence[Tensor],
    lr: float,
    weight_decay: float,
    first: Sequence[Tensor],
    second: Sequence[Tensor],
    steps: int,
) -> torch.optim.Adam:
    """Adam with the state that it had after ``steps`` steps.

    ``first`` and ``second`` are its moving means of gradients and of their squares, a tensor for each parameter, which
    its further steps change in place.
    """
    adam = torch.optim.Adam(parameters, lr, weight_decay=weight_decay)
    for parameter, mean, square in zip(parameters, first, second, strict=True):
        adam.state[parameter] = {"step": torch.tensor(float(steps)), "exp_avg": mean, "exp_avg_sq": square}
    return adam
