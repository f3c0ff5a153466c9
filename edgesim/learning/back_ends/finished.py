"""The end of a job: what the device sends and keeps beside its update."""

from functools import partial

from torch import Tensor

from edgesim.algorithms.algorithm import Algorithm, Trained
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job, Result
from edgesim.learning.own_gradient import own_gradient
from edgesim.learning.tensors import DeviceData


def finished(
    algorithm: Algorithm,
    model: FlatModel,
    data: DeviceData,
    job: Job,
    update: Tensor,
    *,
    loss: float,
    accuracy: float,
    update_norm: float,
    loss_rms: float,
) -> Result:
    """The result of a job with an update [P]; where the algorithm asks for a pass, the model has other weights then."""
    steps, optimiser = len(job.edges) - 1, job.optimiser
    gradient = partial(own_gradient, model, data, job)
    trained = Trained(update, model.trainable, job.given, steps, optimiser.lr, optimiser.momentum, gradient)
    sent = algorithm.sent(trained)
    return Result(update, loss, accuracy, update_norm, loss_rms, _whole(sent.up), _whole(sent.keeps))


def _whole(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that hold no larger one in memory: they may outlive the round by far."""
    return {
        name: tensor.clone() if tensor.untyped_storage().nbytes() > tensor.nbytes else tensor
        for name, tensor in tensors.items()
    }
