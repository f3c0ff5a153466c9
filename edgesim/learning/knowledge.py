"""Class counts and shares of the devices of a round, by NumPy alone."""

from dataclasses import InitVar, dataclass, field
from functools import cached_property

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.learning.batches import LocalWork, batch_samples
from edgesim.learning.drift.holdings import Holdings
from edgesim.learning.federation import Federation
from edgesim.selection.shares import class_shares
from edgesim.selection.view import Source
from edgesim.streams import Streams


@dataclass(eq=False)
class CountKnowledge:
    """Class counts of one round's devices; the part of `Knowledge` that needs no training."""

    federation: Federation
    streams: Streams
    work: LocalWork
    round: int
    held: Holdings
    """Data sets when the round opens."""
    before: Holdings
    """Data sets with which policies compare `held`."""
    numbers: InitVar[Integers | None] = None
    """Numbers of the devices' tasks, [N]; the round's number for all when absent."""
    tasks: Integers = field(init=False)
    """Number by which the samples of each device are drawn, [N]."""

    def __post_init__(self, numbers: Integers | None) -> None:
        self.tasks = np.full(len(self.held.sizes), self.round) if numbers is None else numbers

    def class_counts(self, ids: Integers, source: Source) -> Integers:
        """Samples per class, [n, C]: of the round's mini-batches or of the data sets."""
        if source == "dataset":
            return self.held.class_counts[ids]
        counts: Integers = self._batch_counts[ids]
        return counts

    def previous_class_counts(self, ids: Integers) -> Integers:
        """Samples per class of the data sets that `edgesim.learning.drift.law.Drift.before` compares with, [n, C]."""
        return self.before.class_counts[ids]

    def global_shares(self, source: Source) -> Floats:
        """Class shares over all devices of the run, weighted by data-set size, [C]."""
        sizes = self.held.sizes
        return size_weighted_shares(sizes, self.class_counts(np.arange(len(sizes)), source))

    def batches(self, ids: Integers) -> list[Integers]:
        """Samples of each device's job, in order of use, [n]."""
        return batch_samples(self.held, self.streams, ids, self.tasks[ids], self.work)

    @cached_property
    def _batch_counts(self) -> Integers:
        """Samples per class of the mini-batches of all devices, which the global shares need, [N, C]."""
        held, dataset = self.held, self.federation.dataset
        counts = np.zeros_like(held.class_counts)
        if dataset is not None:
            for device, samples in enumerate(self.batches(np.arange(len(held.sizes)))):
                counts[device] = np.bincount(dataset.train_labels[samples], minlength=counts.shape[1])
        return counts


def size_weighted_shares(sizes: Integers, counts: Integers) -> Floats:
    """Global class shares, [C]: sum over devices of D_n / D times p_n (FedTeddi, section III)."""
    return np.asarray(sizes / sizes.sum() @ class_shares(counts))
