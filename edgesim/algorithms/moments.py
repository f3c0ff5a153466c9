"""What FedAdam and FedYogi share: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2.

Moments m and v are of the mean change of the trainable parameters, without bias correction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from edgesim.algorithms.algorithm import Arrivals, AveragingOptions, State, mean_change, with_mean_buffers
from edgesim.arrays import Floats
from edgesim.quantities import Factor

if TYPE_CHECKING:
    from torch import Tensor


class MomentOptions(AveragingOptions):
    """Options of a server that scales each weight's step by the moments of its changes."""

    b1: float = Field(0.9, ge=0, lt=1)
    """What remains of m from one model to the next."""
    b2: float = Field(0.99, ge=0, le=1)
    """What remains of v; with 1 it never changes."""
    tau: Factor = Field(1e-3, gt=0)
    """Added to the root of v, which begins with it too: the smaller, the more steps adapt to each weight."""
    lr: Factor = Field(0.1, gt=0)
    """Learning rate of the server; it has to be tuned (0.01 to 1)."""


@dataclass(kw_only=True)
class Moments(State):
    """The model and both moments."""

    first: Tensor
    """m, [trainable]."""
    second: Tensor
    """v, [trainable]."""


def first_moments(weights: Tensor, parameters: int, options: MomentOptions) -> Moments:
    """m is zero, v is tau^2."""
    return Moments(weights, first=weights.new_zeros(parameters), second=weights.new_full((parameters,), options.tau**2))


def step_by_moments(
    state: State, arrived: Arrivals, alpha: Floats, options: MomentOptions, follow: Callable[[Tensor, Tensor], Tensor]
) -> Moments:
    """m = b1 m + (1 - b1) Delta, Delta being the sum of alpha_n times update n; w + lr m / (sqrt(v) + tau).

    ``follow`` gives the next v of the last one and Delta^2. Buffers take the plain mean of those merged.
    """
    assert isinstance(state, Moments)
    size = len(state.first)
    change = mean_change(arrived, alpha, size)
    first = options.b1 * state.first + (1 - options.b1) * change
    second = follow(state.second, change.square())
    moved = state.weights[:size] + options.lr * first / (second.sqrt() + options.tau)
    return Moments(with_mean_buffers(moved, arrived), first=first, second=second)
