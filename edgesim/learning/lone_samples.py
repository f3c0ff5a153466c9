"""What batch normalisation cannot do: learn from one number per channel, as from a batch of one small image."""

import copy

import numpy as np
import torch
from torch import nn

from edgesim.algorithms.algorithm import Algorithm
from edgesim.config import LearningConfig
from edgesim.errors import EdgesimError
from edgesim.learning.batches import step_edges
from edgesim.learning.federation import Federation


def refuse_lone_samples(
    module: nn.Module, federation: Federation, learning: LearningConfig, algorithm: Algorithm
) -> None:
    """Raise `EdgesimError` where some step of some device has one sample and the model cannot train on it."""
    # In steps all batches have one size, whatever the data sets have.
    sizes = np.unique(
        federation.frames[1].sizes if learning.epochs is None else federation.drift.sizes_ahead()
    ).tolist()
    work = [(f"a device of {size} samples", size, learning) for size in sizes]
    dataset = federation.dataset
    epoch = learning.model_copy(update={"steps": None, "epochs": 1})
    further = sorted(set(algorithm.epoch_sizes(np.array(sizes))))
    work += [(f"what its algorithm trains on, {size} samples,", size, epoch) for size in further]
    if learning.pretrain and dataset is not None:
        old = int(np.isin(dataset.train_labels, federation.old_classes).sum())
        work.append((f"pre-training on {old} samples", old, epoch))
    for what, size, how in work:
        if 1 in np.diff(step_edges(size, how)) and not _trains_on_one(module, federation):
            raise EdgesimError(
                f"learning.batch_size: {learning.batch_size} leaves {what} a batch of one, on which {learning.model!r} "
                "cannot train (batch normalisation); choose another batch size, or a model with group normalisation"
            )


def _trains_on_one(module: nn.Module, federation: Federation) -> bool:
    assert federation.dataset is not None, "without a dataset nothing trains"
    try:
        with torch.no_grad():
            image = next(module.parameters()).new_zeros(1, *federation.dataset.image_shape)
            copy.deepcopy(module).train()(image)
    except ValueError:
        return False
    return True
