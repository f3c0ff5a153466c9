"""Who holds which samples in which frame."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from edgesim.config import RunConfig
from edgesim.learning import partition_fedteddi, partition_iid
from edgesim.learning.datasets import Dataset, load_dataset
from edgesim.selection.view import Integers
from edgesim.streams import Streams

Partition = Callable[[Integers, int, int, int, Streams], list[list[Integers]]]

PARTITIONS: dict[str, Partition] = {
    "fedteddi": partition_fedteddi.partition,
    "iid": partition_iid.partition,
}


@dataclass(frozen=True, eq=False)
class Frame:
    """The devices' data sets between two changes."""

    sizes: Integers
    """Samples of each device, [N]."""
    class_counts: Integers
    """Samples of each device and class, [N, C]."""
    classes_seen: Integers
    """Classes that anyone held in this frame or before, ascending."""
    samples: Integers
    """Indices into the training set, device after device, [sum of sizes]; empty without a dataset."""

    @cached_property
    def clients(self) -> list[Integers]:
        """Indices into the training set, one array per device."""
        return np.split(self.samples, np.cumsum(self.sizes)[:-1])


@dataclass(frozen=True, eq=False)
class Federation:
    """A dataset and its spread over devices; frame 0 is the state before the first round."""

    dataset: Dataset | None
    frames: list[Frame]

    @property
    def class_count(self) -> int:
        """Number of classes C; 0 without a dataset."""
        return int(self.frames[0].class_counts.shape[1])

    @property
    def old_classes(self) -> Integers:
        """Classes that anyone holds in frame 0, ascending."""
        return self.frames[0].classes_seen


def make_federation(config: RunConfig, streams: Streams) -> Federation:
    """Load the dataset and partition it; raises `EdgesimError`.

    Without a dataset (``none``) every device has ``samples_per_device`` samples of no class, in as many
    frames as ``rounds`` lists.
    """
    device_count, size = config.devices.count, config.data.samples_per_device
    if config.data.dataset == "none":
        empty = np.empty(0, dtype=np.int64)
        blank = Frame(np.full(device_count, size), np.empty((device_count, 0), dtype=np.int64), empty, empty)
        return Federation(None, [blank] * (1 + (len(config.rounds) if isinstance(config.rounds, list) else 1)))
    dataset = load_dataset(config.data)
    if config.data.permute_labels:
        order = streams.generator("permute-labels").permutation(len(dataset.train_labels))
        dataset = replace(dataset, train_labels=dataset.train_labels[order])
    parts = PARTITIONS[config.data.partition](dataset.train_labels, dataset.class_count, device_count, size, streams)
    frames: list[Frame] = []
    seen = np.empty(0, dtype=np.int64)
    for clients in parts:
        frames.append(_frame(clients, dataset, seen))
        seen = frames[-1].classes_seen
    return Federation(dataset, frames)


def _frame(clients: list[Integers], dataset: Dataset, seen_before: Integers) -> Frame:
    sizes = np.array([len(client) for client in clients], dtype=np.int64)
    samples = np.concatenate(clients)
    cells = np.repeat(np.arange(len(clients)), sizes) * dataset.class_count + dataset.train_labels[samples]
    counts = np.bincount(cells, minlength=len(clients) * dataset.class_count)
    counts = counts.reshape(len(clients), dataset.class_count).astype(np.int64)
    held = np.flatnonzero(counts.any(axis=0))
    return Frame(sizes, counts, np.union1d(seen_before, held), samples)
