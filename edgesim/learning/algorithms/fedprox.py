"""Local training that stays near its start: Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020.

Under FedAsync this is its regularised objective, whose rho is ``mu`` (0.005 there).
"""

from collections.abc import Mapping

from pydantic import Field
from typing_extensions import override

from edgesim.base.quantities import Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.fedavg import Averaging
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Pull
from edgesim.learning.torch_types import Tensor


class FedProxOptions(AveragingOptions):
    """Options of FedProx."""

    mu: Factor = Field(0.01, ge=0)
    """Weight of ||w - w_start||^2 / 2, which is added to the loss."""


class ProximalTraining(LocalHalf):
    """Local training with a proximal term in the objective."""

    @override
    def pull(self, given: Mapping[str, Tensor]) -> Pull:
        """mu (w - w_start), the gradient of the term (eq. 2)."""
        return Pull(to_start=self.options.mu)


class FedProx(Algorithm):
    """FedAvg with a proximal term in the local objective."""

    Options = FedProxOptions
    Local = ProximalTraining
    Server = Averaging
    halves = frozenset({"local"})
