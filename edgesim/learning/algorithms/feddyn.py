"""FedDyn: Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021.

Each device adds a linear term to its loss, which comes to cancel the device's own gradient at the model that all agree
on. In the paper's words h is - alpha times `Corrections.mean`, and the last gradient - alpha_i times g_i.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Factor
from edgesim.learning.algorithms.algorithm import Algorithm, Options
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Arrivals, Device, Pull, State, Workbench
from edgesim.learning.algorithms.server_half import EQUAL, ServerHalf, mean_change, whole, with_mean_buffers
from edgesim.learning.torch_types import Tensor, torch


class FedDynOptions(Options):
    """Options of FedDyn."""

    alpha: Factor = Field(0.01, gt=0)
    """Strength of the pull of local training to its start. A small alpha is not FedAvg: the server's step is larger."""
    adaptive: bool = True
    """Whether alpha_i is alpha times the mean size of all devices' data sets over the size of the device's own, as in
    the authors' program; else alpha for all, as in the paper."""


@dataclass(kw_only=True)
class Corrections(State):
    """The model, the g_i and their mean.

    The g_i are stored here, not on the devices, which could sum them up: a device may begin a job while its last
    update is late, and both updates count in the mean.
    """

    mean: Tensor
    """Mean of g_i over all devices of the run, [trainable]."""
    own: dict[int, Tensor] = field(default_factory=dict)
    """g_i, the sum of all updates of each device that has been merged, [trainable]; zero for all others."""


class FedDynLocal(LocalHalf):
    """Local training with a linear term in the objective."""

    @override
    def pull(self, given: Mapping[str, Tensor]) -> Pull:
        """alpha_i (g_i + w - w_start)."""
        alpha = float(given["alpha"])
        return Pull(to_start=alpha, shift=alpha * given["own"] if "own" in given else None)


class FedDynServer(ServerHalf):
    """Mean of models plus the mean of all devices' summed updates, those of devices that are away included."""

    weighs_by = EQUAL

    stored = ("trainable",)

    @override
    def start(self, weights: Tensor, bench: Workbench) -> Corrections:
        """All g_i are zero."""
        return Corrections(weights, mean=weights.new_zeros(self.sizes.parameters))

    @override
    def given(self, state: Corrections, device: Device, ledger: None) -> dict[str, Tensor]:
        """The model, alpha_i as ``alpha`` and, unless it is zero still, g_i as ``own``."""
        alpha = self.options.alpha
        if self.options.adaptive:
            alpha *= device.total_samples / (self.sizes.devices * device.samples)
        own = {"own": state.own[device.id]} if device.id in state.own else {}
        return {"start": state.weights, "alpha": torch.tensor(alpha, dtype=torch.float64), **own}

    @override
    def merge(self, state: Corrections, arrived: Arrivals, alpha: Floats, ledger: None) -> Corrections:
        """w + the sum of alpha_n times update n + the mean of all g_i, each update added to its g_i whatever its age.

        Without late updates that is the plain mean of the models + the mean of all g_i. Buffers take the plain mean.
        """
        size, own = self.sizes.parameters, dict(state.own)
        total = mean_change(arrived, np.ones(len(alpha)), size)
        # As a rule all count alike: then one pass over the updates will do.
        change = total * alpha[0] if (alpha == alpha[0]).all() else mean_change(arrived, alpha, size)
        for device, separate in zip(arrived.ids.tolist(), arrived.separate, strict=True):
            update = whole(separate[:size])
            # In the memory of the update: that of new vectors would cost more time than all sums.
            own[device] = torch.add(own[device], update, out=update) if device in own else update
        mean = state.mean + total / self.sizes.devices
        moved = state.weights[:size] + change + mean
        return Corrections(with_mean_buffers(moved, arrived), mean=mean, own=own)


class FedDyn(Algorithm):
    """Dynamic regularisation."""

    Options = FedDynOptions
    Local = FedDynLocal
    Server = FedDynServer
    needs = frozenset({"rounds", "frames from the last model"})
