"""Model-contrastive learning: Li, He and Song, "Model-Contrastive Federated Learning", CVPR 2021.

A device draws the features of its samples towards those of the model that it received, and away from those of the model
that it trained last. Without the paper's projection head: features are the input of the last linear layer.
"""

from pydantic import Field
from typing_extensions import override

from edgesim.base.quantities import Factor
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.fedavg import Averaging
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Outputs, Sent, Step, Trained
from edgesim.learning.torch_types import F, Tensor


class MoonOptions(AveragingOptions):
    """Options of MOON."""

    mu: Factor = Field(5.0, ge=0)
    """Weight of the contrastive term (the paper: 5 on CIFAR-10, 1 on CIFAR-100)."""
    T: Factor = Field(0.5, gt=0)
    """Temperature of the contrast."""


class ContrastiveTraining(LocalHalf):
    """Local training with a contrastive term in the objective."""

    teachers = ("start", "previous")
    features = True

    @override
    def first_kept(self, weights: Tensor) -> dict[str, Tensor]:
        """The previous model of a device that has none is the one that the run began with, [P]."""
        return {"previous": weights}

    @override
    def loss(self, step: Step) -> Tensor:
        """Cross-entropy plus mu softplus((cos(z, z_previous) - cos(z, z_start)) / T), [n] (eq. 3 and 4)."""
        previous, start = (_cosine(step.own, step.teachers[name]) for name in ("previous", "start"))
        contrast: Tensor = self.options.mu * F.softplus((previous - start) / self.options.T)
        return super().loss(step) + contrast

    @override
    def sent(self, trained: Trained) -> Sent:
        """The trained model, [P], is the next job's previous one."""
        return Sent(keeps={"previous": trained.given["start"] + trained.update})


class Moon(Algorithm):
    """FedAvg with a contrastive term in the local objective."""

    Options = MoonOptions
    Local = ContrastiveTraining
    Server = Averaging
    halves = frozenset({"local"})


def _cosine(own: Outputs, other: Outputs) -> Tensor:
    """Cosine similarity of two models' features of each sample, [n]."""
    return F.cosine_similarity(own.features, other.features)
