"""The reference back end: one device after another."""

from collections.abc import Sequence

import torch
from torch import Tensor

from edgesim.learning.flat import FlatModel
from edgesim.learning.image_loader import ImageLoader
from edgesim.learning.local_sgd import train
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import memory_lasts, seeded
from edgesim.learning.trainer import Job, Promise, Result, diverged, wanted


class LoopBackEnd:
    """Runs promises one after another on one model."""

    name = "loop"

    def __init__(self, model: FlatModel, data: DeviceData) -> None:
        self._model = model
        self._data = data
        self._velocity = torch.zeros_like(model.gradient)

    def run(self, promises: Sequence[Promise]) -> int:
        """Fulfil the promises that have no result yet; returns how many jobs that took."""
        jobs = wanted(promises)
        for promise in jobs:
            promise.result = self.train(promise.job, promise.start)
        return len(jobs)

    def train(self, job: Job, start: Tensor) -> Result:
        """Run one job from start weights, [P]; raises `Diverged`, and `EdgesimError` when memory ran out."""
        self._model.load(start)
        self._velocity.zero_()
        feed = ImageLoader(self._model, self._data, job.samples, job.changes)
        with (
            memory_lasts(f"training device {job.device}", "set learning.batch_size lower"),
            # Dropout masks have a seed of their own; this is for whatever else a user's module draws.
            seeded(self._data.device, job.seed),
        ):
            progress = train(
                self._model,
                feed,
                job.edges,
                job.lr,
                job.momentum,
                self._velocity,
                job.seed,
                job.proximal,
                job.weight_decay,
            )
        if progress.first_bad_step is not None:
            raise diverged(job, progress.first_bad_step)
        update = self._model.weights - start
        norm = float(torch.linalg.vector_norm(update[: self._model.trainable]))
        return Result(update, progress.loss, progress.accuracy, norm, progress.loss_rms)

    def close(self) -> None:
        """Nothing is held."""
