"""The gradient over a device's whole data set at the weights from which its job starts."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job
from edgesim.learning.tensors import DeviceData


def own_gradient(model: FlatModel, data: DeviceData, job: Job) -> Tensor:
    """Gradient of the mean cross-entropy plus weight decay, [trainable]; in evaluation mode, images as they are.

    As many samples at once as in the largest step of the job, so that memory lasts. Loads the start weights.
    """
    model.load(job.start)
    model.module.eval()
    model.gradient.zero_()
    for rows in torch.split(data.index(job.own), int(np.diff(job.edges).max())):
        images, labels = data.train(rows)
        losses = F.cross_entropy(model.module(model.inputs(images)), labels, reduction="sum")
        (losses / len(job.own)).backward()  # type: ignore[no-untyped-call]
    return model.gradient + job.optimiser.weight_decay * model.weights[: model.trainable]
