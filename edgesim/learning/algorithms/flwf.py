"""Federated learning without forgetting: Usmanova et al., "A Distillation-Based Approach Integrating Continual Learning
and Federated Learning for Pervasive Services", 2021, in the form of DPFL's program.

A device's logits are drawn towards those of the model that it received, which knows what others have learned.
"""

from typing import Any

from pydantic import Field
from typing_extensions import override

from edgesim.base.quantities import Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.distillation import soft_cross_entropy
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Device, State, Step
from edgesim.learning.algorithms.server_half import ServerHalf
from edgesim.learning.torch_types import Tensor


class FlwfOptions(AveragingOptions):
    """Options of FLwF."""

    alpha: Factor = Field(1.0, ge=0)
    """Weight of the distillation."""
    T: Factor = Field(2.0, gt=0)
    """Temperature by which the logits of both models are divided."""


class FlwfLocal(LocalHalf):
    """Local training with distillation from the start model in the objective, from round 2 on."""

    teachers = ("start",)

    @override
    def loss(self, step: Step) -> Tensor:
        """Cross-entropy minus alpha sum_y softmax(t / T)_y log softmax(s / T)_y; t are the start's logits, [n]."""
        distance = soft_cross_entropy(step.teachers["start"].logits, step.own.logits, self.options.T)
        distilled: Tensor = self.options.alpha * step.given["teaches"] * distance
        return super().loss(step) + distilled


class FlwfServer(ServerHalf):
    """FedAvg's server, which says whether the model teaches."""

    merges = "models"

    @override
    def given(self, state: State, device: Device, ledger: Any) -> dict[str, Tensor]:
        """The model, and ``teaches``: 1 from round 2 on, 0 before, when nobody has trained the model."""
        teaches = state.weights.new_tensor(float(device.round > 1))
        return super().given(state, device, ledger) | {"teaches": teaches}


class Flwf(Algorithm):
    """FedAvg with distillation from the start model in the local objective."""

    Options = FlwfOptions
    Local = FlwfLocal
    Server = FlwfServer
