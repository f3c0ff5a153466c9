"""Local training that stays near its start: Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020.

Under FedAsync this is its regularised objective, whose rho is ``mu`` (0.005 there).
"""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from edgesim.base.quantities import Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions, Half, Pull
from edgesim.learning.torch_types import Tensor


class FedProxOptions(AveragingOptions):
    """Options of FedProx."""

    mu: Factor = Field(0.01, ge=0)
    """Weight of ||w - w_start||^2 / 2, which is added to the loss."""


class FedProx(Algorithm):
    """FedAvg with a proximal term in the local objective."""

    Options = FedProxOptions
    model_is_mean: ClassVar[bool] = True
    halves: ClassVar[frozenset[Half]] = frozenset({"local"})
    at_edges: ClassVar[bool] = True
    averages: ClassVar[bool] = True

    @override
    def pull(self, given: "Mapping[str, Tensor]") -> Pull:
        """mu (w - w_start), the gradient of the term (eq. 2)."""
        return Pull(to_start=self.options.mu)
