"""Server steps scaled by moments, as of FedAdam and FedYogi: Reddi et al., "Adaptive Federated Optimization", ICLR
2021, Algorithm 2.

Moments m and v are of the mean change of the trainable parameters, without bias correction.
"""

from abc import abstractmethod
from dataclasses import dataclass

from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.records import Arrivals, State, Workbench
from edgesim.learning.algorithms.server_half import ServerHalf, mean_change, with_mean_buffers
from edgesim.learning.torch_types import Tensor


class MomentOptions(AveragingOptions):
    """Options of a server that scales each weight's step by the moments of its changes."""

    b1: float = Field(0.9, ge=0, lt=1)
    """Decay of m from one model to the next."""
    b2: float = Field(0.99, ge=0, le=1)
    """Decay of v from one model to the next; with 1 v never changes."""
    tau: Factor = Field(1e-3, gt=0)
    """Constant added to the root of v, whose start is its square: the smaller, the more steps adapt to each weight."""
    lr: Factor = Field(0.1, gt=0)
    """Learning rate of the server; it has to be tuned (0.01 to 1)."""


@dataclass(kw_only=True)
class Moments(State):
    """The model and both moments."""

    first: Tensor
    """m, [trainable]."""
    second: Tensor
    """v, [trainable]."""


class AdaptiveServer(ServerHalf):
    """Server whose step in each round is the smaller for a weight the more that weight changed lately."""

    merges = "updates"

    @abstractmethod
    def next_second(self, second: Tensor, square: Tensor) -> Tensor:
        """The next v, of the last one and Delta^2, [trainable] each."""

    @override
    def start(self, weights: Tensor, bench: Workbench) -> Moments:
        """The moments of no change: m is zero, v is tau^2."""
        size = self.sizes.parameters
        second = weights.new_full((size,), self.options.tau**2)
        return Moments(weights, first=weights.new_zeros(size), second=second)

    @override
    def merge(self, state: Moments, arrived: Arrivals, alpha: Floats, ledger: None) -> Moments:
        """m = b1 m + (1 - b1) Delta, Delta being the sum of alpha_n times update n; w + lr m / (sqrt(v) + tau).

        Buffers take the plain mean of those merged.
        """
        size, options = self.sizes.parameters, self.options
        change = mean_change(arrived, alpha, size)
        first = options.b1 * state.first + (1 - options.b1) * change
        second = self.next_second(state.second, change.square())
        moved = state.weights[:size] + options.lr * first / (second.sqrt() + options.tau)
        return Moments(with_mean_buffers(moved, arrived), first=first, second=second)


class Adaptive(Algorithm):
    """FedAvg with a server that goes by moments."""

    Options = MomentOptions
    halves = frozenset({"server"})
    needs = frozenset({"joint merges", "frames from the last model"})
