"""FedProx: Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from edgesim.algorithms.algorithm import Algorithm, AveragingOptions, Half, Pull

if TYPE_CHECKING:
    from torch import Tensor


class FedProxOptions(AveragingOptions):
    """Options of FedProx."""

    mu: float = Field(0.01, ge=0)
    """Weight of the proximal term."""


class FedProx(Algorithm):
    """FedAvg whose local loss grows with mu / 2 ||w - w_start||^2 (eq. 2)."""

    Options = FedProxOptions
    halves: ClassVar[frozenset[Half]] = frozenset({"local"})
    at_edges = True

    def pull(self, given: Mapping[str, Tensor]) -> Pull:
        """The gradient of the proximal term."""
        return Pull(to_start=self.options.mu)
