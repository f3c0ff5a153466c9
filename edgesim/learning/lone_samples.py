"""Refusal of batches of a single sample, on which batch normalisation cannot train."""

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.config import LearningConfig
from edgesim.learning.batches import LocalWork, least_batch
from edgesim.learning.federation import Federation

EpochsOver = Callable[[Integers], list[tuple[int, int | None]]]


def refuse_lone_samples(
    module: nn.Module, federation: Federation, learning: LearningConfig, local: LocalWork, epochs_over: EpochsOver
) -> None:
    """Raise `EdgesimError` where some step of some device has one sample and the model cannot train on it.

    ``epochs_over(sizes)`` is `Algorithm.epochs_over` for data sets of these sizes.
    """
    batches, key = np.unique(local.batch).tolist(), "learning.batch_size"
    if local.steps is None:
        sizes = np.unique(federation.drift.sizes_ahead()).tolist()
        work = [(key, batch, f"a device of {size} samples", size) for size in sizes for batch in batches]
    else:
        # In steps all batches of a device have one size, whatever its data sets have.
        sizes = np.unique(federation.frames[1].sizes).tolist()
        work = [(key, batch, f"a device of {sizes[0]} samples", batch) for batch in batches]
    for size, own_batch in sorted(set(epochs_over(np.array(sizes))), key=lambda pair: pair[0]):
        used = [(key, batch) for batch in batches] if own_batch is None else [("the algorithm's own batch", own_batch)]
        work += [(name, batch, f"the algorithm's own training on {size} samples", size) for name, batch in used]
    dataset = federation.dataset
    if learning.pretrain and dataset is not None:
        old = int(np.isin(dataset.train_labels, federation.old_classes).sum())
        work.append((key, least_batch(learning), f"pre-training on {old} samples", old))
    # A batch of one is the rest of an epoch, or every batch.
    for name, batch, what, size in work:
        if (size % batch == 1 or batch == 1) and not _trains_on_one(module, federation):
            raise EdgesimError(
                f"{name}: {batch} leaves {what} a batch of one, on which {learning.model!r} "
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
