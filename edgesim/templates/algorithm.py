"""Whose it is, "what it is called", where and when it was published."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from edgesim.arrays import Floats
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Arrivals, Pull, State, Workbench
from edgesim.learning.algorithms.server_half import ServerHalf, mean_change, with_mean_buffers
from edgesim.learning.torch_types import Tensor
from edgesim.quantities import Factor


class MineOptions(AveragingOptions):
    """Options of Mine."""

    mu: Factor = Field(0.1, ge=0)
    """Meaning of the option, with its symbol in the paper."""


class MineLocal(LocalHalf):
    """The work of devices, in a line."""

    def pull(self, given: Mapping[str, Tensor]) -> Pull:
        """mu (w - w_start), in every step of every device."""
        return Pull(to_start=self.options.mu)


@dataclass(kw_only=True)
class MineState(State):
    """The model, and what the server remembers beside it."""

    last: Tensor
    """The mean update of the round before, [trainable]."""


class MineServer(ServerHalf):
    """The work of the server, in a line."""

    def start(self, weights: Tensor, bench: Workbench) -> MineState:
        """The state before round 1, without an update."""
        return MineState(weights, last=weights.new_zeros(self.sizes.parameters))

    def merge(self, state: MineState, arrived: Arrivals, alpha: Floats, ledger: None) -> MineState:
        """w + the mean of this update and the last (eq. 1). Buffers take the plain mean of those merged."""
        size = self.sizes.parameters
        change = mean_change(arrived, alpha, size)
        moved = state.weights[:size] + (change + state.last) / 2
        return MineState(with_mean_buffers(moved, arrived), last=change)


class Mine(Algorithm):
    """The algorithm, in a line."""

    Options = MineOptions
    Local = MineLocal
    Server = MineServer
    needs: ClassVar[frozenset[str]] = frozenset({"joint merges", "frames from the last model"})
