"""Continual local training: Yao and Sun, "Continual Local Training for Better Initialization of Federated Models", ICIP
2020.

On a few labelled images the server finds how much each tensor of the model matters; devices change those tensors
the less.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import Count, Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Devices, Pull, Sizes, State, Workbench
from edgesim.learning.algorithms.server_half import ServerHalf
from edgesim.learning.payload import BITS_PER_PARAMETER
from edgesim.learning.torch_types import Tensor, torch


class FedClOptions(AveragingOptions):
    """Options of FedCL."""

    coe: Factor = Field(0.5, ge=0)
    """Weight of the penalty in the loss."""
    proxy_share: float = Field(0.01, gt=0, le=1)
    """Size of the labelled set that the server looks at, as a share of the devices' data: equally many of each class,
    two or more, the first of the public set."""
    batch: Count = Field(64, ge=1)
    """Images of the labelled set in a batch."""


class FedClLocal(LocalHalf):
    """Local training with a penalty on changes of each tensor in the objective, by how much the tensor matters."""

    @override
    def pull(self, given: Mapping[str, Tensor]) -> Pull:
        """2 coe Omega_l (w - w_start), the gradient of coe sum_l Omega_l ||w_l - w_start,l||^2."""
        sizes = torch.tensor(self.sizes.tensor_sizes, device=given["omega"].device)
        return Pull(to_start=2 * self.options.coe * given["omega"].repeat_interleave(sizes))


class FedClServer(ServerHalf):
    """FedAvg's server, which finds out how much each tensor matters."""

    merges = "models and more"

    @override
    def download_bits(self, devices: Devices, round: int, ledger: Any) -> Floats:
        """The model and one number for each of its tensors, [n]."""
        return super().download_bits(devices, round, ledger) + BITS_PER_PARAMETER * self.sizes.tensors

    @override
    def prepare(self, state: State, bench: Workbench) -> State:
        """Omega_l, [L]: the sum over batches of the square norm of the gradient of tensor l, over the images in all."""
        # Up to the rounding of a share that is not exact.
        size = int(self.options.proxy_share * bench.private_count + 1e-9)
        per_class = max(2, size // self.sizes.classes)
        proxy = bench.public[: per_class * self.sizes.classes]
        batches = np.split(proxy, range(self.options.batch, len(proxy), self.options.batch))
        squares = [
            torch.stack([gradient.square().sum() for gradient in gradients])
            for gradients in bench.gradients(state.weights, batches)
        ]
        return replace(state, shared={"omega": torch.stack(squares).sum(0) / len(proxy)})


class FedCl(Algorithm):
    """FedAvg with a penalty on changes of tensors that matter."""

    Options = FedClOptions
    Local = FedClLocal
    Server = FedClServer
    needs = frozenset({"public images"})

    @classmethod
    @override
    def check(cls, options: FedClOptions, sizes: Sizes) -> None:
        """Refuse a public set, where there is one, of fewer than two images of a class."""
        public, least = sizes.public, 2 * sizes.classes
        if 0 < public < least:
            raise EdgesimError(
                f"algorithm.name: 'fedcl' needs two labelled images of each class, {least} of {sizes.classes} "
                f"classes, and there are {public} public images; raise data.public_per_class",
                "algorithm.name",
                "data.public_per_class",
            )
