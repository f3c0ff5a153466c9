"""Passes of a finished job's model over samples: in evaluation mode, without augmentation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Outputs
from edgesim.learning.algorithms.server_half import whole
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job, JobResult, trained_by
from edgesim.learning.tensors import DeviceData


@dataclass(frozen=True, eq=False)
class OwnPasses:
    """Passes of one job over the samples of `LocalHalf.passes_over`."""

    model: FlatModel
    data: DeviceData
    job: Job

    def gradient(self) -> Tensor:
        """Gradient of the mean cross-entropy plus weight decay at the start weights, [trainable]; loads these."""
        model, job = self.model, self.job
        model.load(job.start)
        model.gradient.zero_()
        for images, labels in self._batches():
            losses = F.cross_entropy(model.module(images), labels, reduction="sum")
            (losses / len(job.passed)).backward()  # type: ignore[no-untyped-call]
        return model.gradient + job.optimiser.weight_decay * model.weights[: model.trainable]

    def outputs(self, update: Tensor) -> tuple[Outputs, Tensor]:
        """Outputs of the model trained by ``update`` [P], features among them where it has any, and labels, [n].

        Loads the trained weights.
        """
        model = self.model
        model.load(self.job.start + update)
        with torch.no_grad():
            passes = [(model.outputs(images), labels) for images, labels in self._batches()]
        features = [outputs.features for outputs, _ in passes if outputs.features is not None]
        logits = torch.cat([outputs.logits for outputs, _ in passes])
        return Outputs(logits, torch.cat(features) if features else None), torch.cat([labels for _, labels in passes])

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Images and labels, as many at once as in the largest step of the job, so that memory lasts."""
        self.model.module.eval()
        for rows in torch.split(self.data.index(self.job.passed), int(np.diff(self.job.edges).max())):
            images, labels = self.data.train(rows)
            yield self.model.inputs(images), labels


def finished(local: LocalHalf, passes: OwnPasses, trained: JobResult, velocity: Tensor) -> JobResult:
    """Result of a job, with the tensors that its device sends and stores beside the update."""
    if passes.job.optimiser.persist_momentum:
        trained = replace(trained, velocity=velocity.clone())
    outputs = partial(passes.outputs, trained.update)
    sent = local.sent(trained_by(passes.job, trained, passes.gradient, outputs))
    if not (sent.up or sent.keeps):
        return trained
    return replace(trained, up=_apart(sent.up, trained.update), keeps=_apart(sent.keeps, trained.update))


def _apart(tensors: dict[str, Tensor], update: Tensor) -> dict[str, Tensor]:
    """Tensors that hold no larger one in memory, and no part of the update: a merge may change that."""
    place = update.untyped_storage().data_ptr()
    return {
        name: tensor.clone() if tensor.untyped_storage().data_ptr() == place else whole(tensor)
        for name, tensor in tensors.items()
    }
