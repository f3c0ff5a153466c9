"""Whose it is, "what it is called", where and when it was published."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from edgesim.arrays import Floats
from edgesim.learning.algorithms import algorithm
from edgesim.learning.algorithms.algorithm import Algorithm, Arrivals, AveragingOptions, Pull, State
from edgesim.learning.torch_types import Tensor
from edgesim.quantities import Factor


class MineOptions(AveragingOptions):
    """Options of Mine."""

    mu: Factor = Field(0.1, ge=0)
    """Meaning of the option, with its symbol in the paper."""


@dataclass(kw_only=True)
class MineState(State):
    """The model, and what the server remembers beside it."""

    last: Tensor
    """The mean update of the round before, [trainable]."""


class Mine(Algorithm):
    """The work of devices and server, in a line."""

    Options = MineOptions
    needs: ClassVar[frozenset[str]] = frozenset({"joint merges"})
    keeps_state: ClassVar[bool] = True

    def start(self, weights: Tensor) -> MineState:
        """The state before round 1, without an update."""
        return MineState(weights, last=weights.new_zeros(self.sizes.parameters))

    def pull(self, given: Mapping[str, Tensor]) -> Pull:
        """mu (w - w_start), in every step of every device."""
        return Pull(to_start=self.options.mu)

    def merge(self, state: MineState, arrived: Arrivals, alpha: Floats, ledger: None) -> MineState:
        """w + the mean of this update and the last (eq. 1). Buffers take the plain mean of those merged."""
        size = self.sizes.parameters
        change = algorithm.mean_change(arrived, alpha, size)
        moved = state.weights[:size] + (change + state.last) / 2
        return MineState(algorithm.with_mean_buffers(moved, arrived), last=change)
