"""Adam at the server: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2."""

from typing_extensions import override

from edgesim.learning.algorithms.moments import Adaptive, AdaptiveServer
from edgesim.learning.torch_types import Tensor


class FedAdamServer(AdaptiveServer):
    """Adam at the server: v forgets old changes by a constant factor."""

    @override
    def next_second(self, second: Tensor, square: Tensor) -> Tensor:
        """v becomes b2 v + (1 - b2) Delta^2."""
        b2: float = self.options.b2
        return b2 * second + (1 - b2) * square


class FedAdam(Adaptive):
    """FedAvg with Adam at the server."""

    Server = FedAdamServer
