"""Training jobs as promises, and the reference back end: one device after another."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from edgesim.errors import Diverged
from edgesim.learning.flat import FlatModel
from edgesim.learning.local_sgd import train
from edgesim.learning.numerics import seeded
from edgesim.learning.tensors import DeviceData
from edgesim.selection.view import Integers


@dataclass(frozen=True, eq=False)
class Job:
    """Local training of one device in one round; its result depends on these and the start weights alone."""

    device: int
    round: int
    seed: int
    """Of everything random within the job: dropout masks."""
    samples: Integers
    """Training samples in order of use."""
    edges: Integers
    """Where steps begin and end among the samples, [steps + 1]."""
    lr: float
    momentum: float


@dataclass(frozen=True, eq=False)
class Result:
    """What a job brought."""

    update: Tensor
    """Trained weights minus start weights, [P]."""
    loss: float
    accuracy: float
    update_norm: float
    """Norm of the trainable part of the update."""


@dataclass(eq=False)
class Promise:
    """A job that runs, if ever, when its result is first wanted."""

    job: Job
    start: Tensor
    """Weights from which the job starts, [P]."""
    due: bool = False
    """Whether the device's simulated work is finished."""
    result: Result | None = None


class LoopBackEnd:
    """Runs promises one after another on one model."""

    name = "loop"

    def __init__(self, model: FlatModel, data: DeviceData) -> None:
        self._model = model
        self._data = data
        self._velocity = torch.zeros_like(model.gradient)

    def run(self, promises: Sequence[Promise]) -> int:
        """Fulfil the promises that have no result yet; returns how many jobs that took.

        Raises `Diverged` when a loss is not finite.
        """
        wanted = [promise for promise in promises if promise.result is None]
        for promise in wanted:
            promise.result = self._train(promise.job, promise.start)
        return len(wanted)

    def _train(self, job: Job, start: Tensor) -> Result:
        self._model.load(start)
        self._velocity.zero_()
        with seeded(self._data.device, job.seed):
            progress = train(self._model, self._data, job.samples, job.edges, job.lr, job.momentum, self._velocity)
        if progress.first_bad_step is not None:
            raise Diverged(
                f"device {job.device}, round {job.round}, step {progress.first_bad_step}: the training loss "
                f"is not finite (lr {job.lr:g}); lower learning.lr"
            )
        update = self._model.weights - start
        norm = float(torch.linalg.vector_norm(update[: self._model.trainable]))
        return Result(update, progress.loss, progress.accuracy, norm)
