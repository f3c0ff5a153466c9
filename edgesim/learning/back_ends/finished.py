"""The end of a job: what the device sends and keeps beside its update."""

from torch import Tensor

from edgesim.algorithms.algorithm import Algorithm, Trained
from edgesim.learning.jobs import Job, Result


def finished(
    algorithm: Algorithm,
    job: Job,
    update: Tensor,
    trainable: int,
    *,
    loss: float,
    accuracy: float,
    update_norm: float,
    loss_rms: float,
) -> Result:
    """The result of a job with an update [P] of so many trainable parameters."""
    steps, optimiser = len(job.edges) - 1, job.optimiser
    sent = algorithm.sent(Trained(update, trainable, job.given, steps, optimiser.lr, optimiser.momentum))
    return Result(update, loss, accuracy, update_norm, loss_rms, _whole(sent.up), _whole(sent.keeps))


def _whole(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that hold no larger one in memory: they may outlive the round by far."""
    return {
        name: tensor.clone() if tensor.untyped_storage().nbytes() > tensor.nbytes else tensor
        for name, tensor in tensors.items()
    }
