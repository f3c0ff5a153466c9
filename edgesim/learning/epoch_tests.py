"""Accuracy of a device's model after each local epoch: on held-out samples, or on those of the epoch."""

from dataclasses import dataclass

import torch

from edgesim.base.arrays import Integers
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job
from edgesim.learning.passes import ROWS, ROWS_IN_CACHE, in_cache
from edgesim.learning.tensors import DeviceData


@dataclass(frozen=True, eq=False)
class EpochTests:
    """Tests of one job whose epochs are measured."""

    model: FlatModel
    data: DeviceData
    job: Job

    @property
    def after(self) -> frozenset[int]:
        """Steps, from 1, after which the model is tested."""
        return frozenset(last for _, last in self.job.epochs) if len(self.job.held_out) else frozenset()

    def accuracy(self) -> float:
        """Accuracy of the loaded weights on the held-out samples, in evaluation mode.

        The model is in training mode afterwards.
        """
        model, right = self.model, 0
        model.module.eval()
        at_once = ROWS_IN_CACHE if in_cache(model) else ROWS
        with torch.no_grad():
            for rows in torch.split(self.data.index(self.job.held_out), at_once):
                images, labels = self.data.train(rows)
                right += int((model.module(model.inputs(images)).argmax(1) == labels).sum())
        model.module.train()
        return right / len(self.job.held_out)

    def training_accuracies(self, sizes: Integers, hits: Integers) -> tuple[float, ...]:
        """Share of right answers in each epoch as it was trained, from each step's ``sizes`` and ``hits``, [steps]."""
        return tuple(float(hits[first:last].sum() / sizes[first:last].sum()) for first, last in self.job.epochs)
