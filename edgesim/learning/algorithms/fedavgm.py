"""Server momentum: Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual
Classification", 2019.
"""

from dataclasses import dataclass

from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.records import Arrivals, State, Workbench
from edgesim.learning.algorithms.server_half import ServerHalf, mean_change, with_mean_buffers
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


class FedAvgMServer(ServerHalf):
    """Each round a step along a momentum of mean updates."""

    merges = "updates"

    @override
    def start(self, weights: Tensor, bench: Workbench) -> Momentum:
        """The momentum is zero."""
        return Momentum(weights, momentum=weights.new_zeros(self.sizes.parameters))

    @override
    def merge(self, state: Momentum, arrived: Arrivals, alpha: Floats, ledger: None) -> Momentum:
        """m = beta m + the sum of alpha_n times update n; w + lr m. Buffers take the plain mean of those merged."""
        size = self.sizes.parameters
        momentum = self.options.beta * state.momentum + mean_change(arrived, alpha, size)
        moved = state.weights[:size] + self.options.lr * momentum
        return Momentum(with_mean_buffers(moved, arrived), momentum=momentum)


class FedAvgM(Algorithm):
    """FedAvg with momentum at the server."""

    Options = FedAvgMOptions
    Server = FedAvgMServer
    halves = frozenset({"server"})
    needs = frozenset({"joint merges", "frames from the last model"})
