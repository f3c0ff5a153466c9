"""Yogi at the server: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2."""

from typing_extensions import override

from edgesim.learning.algorithms.moments import Adaptive, AdaptiveServer
from edgesim.learning.torch_types import Tensor


class FedYogiServer(AdaptiveServer):
    """Yogi at the server: v follows a sudden change of the updates' size by small steps."""

    @override
    def next_second(self, second: Tensor, square: Tensor) -> Tensor:
        """v becomes v - (1 - b2) Delta^2 sign(v - Delta^2)."""
        b2: float = self.options.b2
        return second - (1 - b2) * square * (second - square).sign()


class FedYogi(Adaptive):
    """FedAvg with Yogi at the server."""

    Server = FedYogiServer
