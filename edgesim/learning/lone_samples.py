"""What batch normalisation cannot do: learn from one number per channel, as from a batch of one small image."""

import copy

import numpy as np
import torch
from torch import nn

from edgesim.config import LearningConfig
from edgesim.errors import EdgesimError
from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.batches import LocalWork, least_batch
from edgesim.learning.federation import Federation


def refuse_lone_samples(
    module: nn.Module, federation: Federation, learning: LearningConfig, local: LocalWork, algorithm: Algorithm
) -> None:
    """Raise `EdgesimError` where some step of some device has one sample and the model cannot train on it."""
    batches = np.unique(local.batch).tolist()
    if local.steps is None:
        sizes = np.unique(federation.drift.sizes_ahead()).tolist()
        work = [(f"a device of {size} samples", size, batch) for size in sizes for batch in batches]
    else:
        # In steps all batches of a device have one size, whatever its data sets have.
        sizes = np.unique(federation.frames[1].sizes).tolist()
        work = [(f"a device of {sizes[0]} samples", batch, batch) for batch in batches]
    dataset = federation.dataset
    further = sorted(set(algorithm.epoch_sizes(np.array(sizes))))
    work += [(f"what its algorithm trains on, {size} samples,", size, batch) for size in further for batch in batches]
    if learning.pretrain and dataset is not None:
        old = int(np.isin(dataset.train_labels, federation.old_classes).sum())
        work.append((f"pre-training on {old} samples", old, least_batch(learning)))
    # A batch of one is the rest of an epoch, or every batch.
    for what, size, batch in work:
        if (size % batch == 1 or batch == 1) and not _trains_on_one(module, federation):
            raise EdgesimError(
                f"learning.batch_size: {batch} leaves {what} a batch of one, on which {learning.model!r} "
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
