"""Who holds which samples in which frame."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from edgesim.arrays import Integers
from edgesim.config import RunConfig
from edgesim.errors import EdgesimError
from edgesim.learning import partitions
from edgesim.learning.datasets import Dataset, load_shared
from edgesim.streams import Streams


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
    def firsts(self) -> Integers:
        """Where each device's samples begin among `samples`, [N]."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    @cached_property
    def clients(self) -> list[Integers]:
        """Indices into the training set, one array per device."""
        return np.split(self.samples, self.firsts[1:])


@dataclass(frozen=True, eq=False)
class Federation:
    """A dataset and its spread over devices; frame 0 is the state before the first round."""

    dataset: Dataset | None
    frames: list[Frame]
    public: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Indices into the training set that no device holds and all know, [m], in the order of `Shared.public`."""

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

    A partition that does not change holds in frame 0 and frame 1 alike.
    Without a dataset (``none``) every device has ``samples_per_device`` samples of no class, in as many
    frames as ``rounds`` lists.
    """
    device_count = config.devices.count
    data = partitions.resolve(config.data)
    if data.dataset == "none":
        empty = np.empty(0, dtype=np.int64)
        sizes = np.broadcast_to(np.asarray(data.samples_per_device, dtype=np.int64), device_count)
        blank = Frame(sizes, np.empty((device_count, 0), dtype=np.int64), empty, empty)
        return Federation(None, [blank] * (1 + (len(config.rounds) if isinstance(config.rounds, list) else 1)))
    shared = load_shared(data)
    dataset, private = shared.dataset, shared.private
    if data.permute_labels:
        order = streams.generator("permute-labels").permutation(len(dataset.train_labels))
        dataset = replace(dataset, train_labels=dataset.train_labels[order])
    law, labels = partitions.make_partition(data), dataset.train_labels[private]
    how = dataset.class_count, device_count, data.samples_per_device, streams
    if dataset.domains is None:
        parts = law.divide(labels, *how)
    else:
        parts = law.divide_domains(labels, dataset.domains.train[private], *how)
    frames: list[Frame] = []
    seen = np.empty(0, dtype=np.int64)
    for clients in parts:
        frames.append(_frame([private[own] for own in clients], dataset, seen))
        seen = frames[-1].classes_seen
    return Federation(dataset, frames * 2 if len(frames) == 1 else frames, shared.public)


def _frame(clients: list[Integers], dataset: Dataset, seen_before: Integers) -> Frame:
    sizes = np.array([len(client) for client in clients], dtype=np.int64)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        raise EdgesimError(
            f"data.partition: device {empty[0]} holds no samples ({len(empty)} of {len(clients)} devices do); "
            "every device needs at least one"
        )
    samples = np.concatenate(clients)
    cells = np.repeat(np.arange(len(clients)), sizes) * dataset.class_count + dataset.train_labels[samples]
    counts = np.bincount(cells, minlength=len(clients) * dataset.class_count)
    counts = counts.reshape(len(clients), dataset.class_count).astype(np.int64)
    held = np.flatnonzero(counts.any(axis=0))
    return Frame(sizes, counts, np.union1d(seen_before, held), samples)
