"""The reference back end: one device after another."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch

from edgesim.learning.algorithms.local_half import LocalHalf, has_own
from edgesim.learning.epoch_tests import EpochTests
from edgesim.learning.flat import FlatModel
from edgesim.learning.image_loader import ImageLoader
from edgesim.learning.jobs import Job, JobResult, Promise, diverged, wanted
from edgesim.learning.local_sgd import train
from edgesim.learning.objective import LocalObjective
from edgesim.learning.own_passes import OwnPasses, finished
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import memory_lasts, seeded


class LoopBackEnd:
    """Runs promises one after another on one model."""

    name = "loop"
    facts: ClassVar[Mapping[str, str]] = {}

    def __init__(self, model: FlatModel, data: DeviceData, local: LocalHalf) -> None:
        self._model = model
        self._data = data
        self._local = local
        self._velocity = torch.zeros_like(model.gradient)

    def run(self, promises: Sequence[Promise]) -> int:
        """Fulfil the promises that have no result yet; returns how many jobs that took."""
        jobs = wanted(promises)
        for promise, job in jobs:
            promise.result = self.train(job)
        return len(jobs)

    def train(self, job: Job) -> JobResult:
        """Run one job; raises `Diverged`, and `EdgesimError` when memory ran out."""
        model = self._model
        model.load(job.start)
        self._velocity.zero_() if job.velocity is None else self._velocity.copy_(job.velocity)
        loader = ImageLoader(model, self._data, job.samples, job.changes)
        with (
            memory_lasts(f"training device {job.device}", "set learning.batch_size lower"),
            # Dropout masks have a seed of their own; this is for whatever else a user's module draws.
            seeded(self._data.device, job.seed),
        ):
            pull = self._local.pull(job.given)
            own_loss = has_own(self._local, "loss")
            objective = LocalObjective(self._local, model, job.given, job.seed) if own_loss else None
            rows = job.rows
            about = None if rows is None else self._data.index(rows)
            tests = EpochTests(model, self._data, job) if job.epochs else None
            settings = job.edges, job.optimiser, self._velocity, job.seed, pull, objective, about, job.measured, tests
            progress = train(model, loader, *settings)
        if progress.first_bad_step is not None:
            raise diverged(job, progress.first_bad_step)
        update = model.weights - job.start
        norm = float(torch.linalg.vector_norm(update[: model.trainable]))
        figures = progress.loss, progress.accuracy, norm, progress.loss_rms
        trained = JobResult(update, *figures, epoch_accuracies=progress.epoch_accuracies)
        return finished(self._local, OwnPasses(model, self._data, job), trained, self._velocity)

    def close(self) -> None:
        """Do nothing: the back end holds no resources."""
