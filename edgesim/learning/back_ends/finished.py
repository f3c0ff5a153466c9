"""The end of a job: what the device sends and keeps beside its update."""

from dataclasses import replace

from torch import Tensor

from edgesim.algorithms.algorithm import Algorithm, Trained
from edgesim.learning.jobs import Job, Result


def finished(algorithm: Algorithm, job: Job, trained: Result) -> Result:
    """What a job brought, with what its device sends and keeps beside the update."""
    steps, optimiser = len(job.edges) - 1, job.optimiser
    sent = algorithm.sent(Trained(trained.update, job.given, steps, optimiser.lr, optimiser.momentum))
    return replace(trained, up=_whole(sent.up), keeps=_whole(sent.keeps))


def _whole(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that hold no larger one in memory: they may outlive the round by far."""
    return {
        name: tensor.clone() if tensor.untyped_storage().nbytes() > tensor.nbytes else tensor
        for name, tensor in tensors.items()
    }
