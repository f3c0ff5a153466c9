"""Adam at the server: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from edgesim.algorithms import algorithm
from edgesim.algorithms.algorithm import Algorithm, Arrivals, Half, State
from edgesim.algorithms.moments import MomentOptions, Moments, first_moments, step_by_moments
from edgesim.arrays import Floats

if TYPE_CHECKING:
    from torch import Tensor


class FedAdam(Algorithm):
    """Each round a step that is the smaller for a weight the more that weight changed lately."""

    Options: ClassVar[type[algorithm.Options]] = MomentOptions
    halves: ClassVar[frozenset[Half]] = frozenset({"server"})
    protocols: ClassVar[frozenset[str]] = frozenset({"synchronous", "buffered"})
    keeps_state: ClassVar[bool] = True

    def start(self, weights: Tensor) -> Moments:
        """The moments of no change."""
        return first_moments(weights, self.sizes.parameters, self.options)

    def merge(self, state: State, arrived: Arrivals, alpha: Floats, ledger: None) -> Moments:
        """A step by m and v, where v becomes b2 v + (1 - b2) Delta^2."""
        b2 = self.options.b2
        return step_by_moments(state, arrived, alpha, self.options, lambda v, square: b2 * v + (1 - b2) * square)
