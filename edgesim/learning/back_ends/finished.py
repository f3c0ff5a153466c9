"""The end of a job: what the device sends and keeps beside its update."""

from torch import Tensor

from edgesim.algorithms.algorithm import Algorithm, Trained
from edgesim.learning.jobs import Job, Result
from edgesim.learning.local_sgd import Progress


def finished(algorithm: Algorithm, job: Job, update: Tensor, trainable: int, norm: float, progress: Progress) -> Result:
    """The result of a job with an update [P] of so many trainable parameters, whose norm they have."""
    optimiser = job.optimiser
    steps = len(job.edges) - 1
    sent = algorithm.sent(Trained(update, trainable, job.given, steps, optimiser.lr, optimiser.momentum))
    up, keeps = _whole(sent.up), _whole(sent.keeps)
    return Result(update, progress.loss, progress.accuracy, norm, progress.loss_rms, up, keeps)


def _whole(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that hold no larger one in memory: they may outlive the round by far."""
    return {
        name: tensor.clone() if tensor.untyped_storage().nbytes() > tensor.nbytes else tensor
        for name, tensor in tensors.items()
    }
