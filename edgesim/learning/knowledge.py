"""What NumPy alone knows about the devices of a round: class counts and shares."""

from dataclasses import InitVar, dataclass, field
from functools import cached_property

import numpy as np

from edgesim.arrays import Floats, Integers
from edgesim.config import LearningConfig
from edgesim.learning.batches import batch_samples
from edgesim.learning.federation import Federation
from edgesim.selection.shares import class_shares
from edgesim.selection.view import Source
from edgesim.streams import Streams


@dataclass(eq=False)
class CountKnowledge:
    """Class counts of one round's devices; the part of `Knowledge` that needs no training."""

    federation: Federation
    streams: Streams
    learning: LearningConfig
    round: int
    frame: int
    numbers: InitVar[Integers | None] = None
    """Those of the devices' tasks, [N]; all the round's when absent."""
    tasks: Integers = field(init=False)
    """By which number the samples of each device are drawn, [N]."""

    def __post_init__(self, numbers: Integers | None) -> None:
        count = len(self.federation.frames[self.frame].sizes)
        self.tasks = np.full(count, self.round) if numbers is None else numbers

    def class_counts(self, ids: Integers, source: Source) -> Integers:
        """Samples per class, [n, C]: of the round's mini-batches or of the frame's data sets."""
        if source == "dataset":
            return self.federation.frames[self.frame].class_counts[ids]
        counts: Integers = self._batch_counts[ids]
        return counts

    def previous_class_counts(self, ids: Integers) -> Integers:
        """Samples per class of the data sets of the frame before, [n, C]."""
        return self.federation.frames[self.frame - 1].class_counts[ids]

    def global_shares(self, source: Source) -> Floats:
        """Class shares over all devices of the run, weighted by data-set size, [C]."""
        frame = self.federation.frames[self.frame]
        return size_weighted_shares(frame.sizes, self.class_counts(np.arange(len(frame.sizes)), source))

    @cached_property
    def _batch_counts(self) -> Integers:
        """Of all devices: a policy that asks for batch counts needs the global shares too."""
        frame, dataset = self.federation.frames[self.frame], self.federation.dataset
        counts = np.zeros_like(frame.class_counts)
        if dataset is not None:
            every = np.arange(len(frame.sizes))
            drawn = batch_samples(self.federation, self.streams, every, self.tasks, self.frame, self.learning)
            for device, samples in enumerate(drawn):
                counts[device] = np.bincount(dataset.train_labels[samples], minlength=counts.shape[1])
        return counts


def size_weighted_shares(sizes: Integers, counts: Integers) -> Floats:
    """Global class shares, [C]: sum over devices of D_n / D times p_n (FedTeddi, section III)."""
    return np.asarray(sizes / sizes.sum() @ class_shares(counts))
