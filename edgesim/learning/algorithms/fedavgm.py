"""Server momentum: Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual
Classification", 2019.
"""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Factor
from edgesim.learning.algorithms import algorithm
from edgesim.learning.algorithms.algorithm import Algorithm, Arrivals, AveragingOptions, Half, State
from edgesim.learning.torch_types import Tensor


class FedAvgMOptions(AveragingOptions):
    """Options of FedAvgM."""

    beta: float = Field(0.9, ge=0, lt=1)
    """Decay of the momentum from one model to the next."""
    lr: Factor = Field(1.0, gt=0)
    """Learning rate of the server."""


@dataclass(kw_only=True)
class Momentum(State):
    """The model and its momentum."""

    momentum: Tensor
    """m, [trainable]."""


class FedAvgM(Algorithm):
    """Each round a step along a momentum of mean updates."""

    Options = FedAvgMOptions
    halves: ClassVar[frozenset[Half]] = frozenset({"server"})
    needs: ClassVar[frozenset[str]] = frozenset({"joint merges"})
    keeps_state: ClassVar[bool] = True
    averages: ClassVar[bool] = True

    @override
    def start(self, weights: Tensor) -> Momentum:
        """The momentum is zero."""
        return Momentum(weights, momentum=weights.new_zeros(self.sizes.parameters))

    @override
    def merge(self, state: Momentum, arrived: Arrivals, alpha: Floats, ledger: None) -> Momentum:
        """m = beta m + the sum of alpha_n times update n; w + lr m. Buffers take the plain mean of those merged."""
        size = self.sizes.parameters
        momentum = self.options.beta * state.momentum + algorithm.mean_change(arrived, alpha, size)
        moved = state.weights[:size] + self.options.lr * momentum
        return Momentum(algorithm.with_mean_buffers(moved, arrived), momentum=momentum)
