"""Frames, the law without options: the sets of ``data.partition`` hold for the whole run, or for a frame of rounds.

Only FedTeddi's partition has several frames (`edgesim.learning.partitions.fedteddi`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.learning import partitions
from edgesim.learning.datasets import Dataset
from edgesim.learning.drift.held_out import NONE, HeldOut, part_of
from edgesim.learning.drift.holdings import Frame, Holdings
from edgesim.learning.drift.law import Law, Setting, When
from edgesim.streams import Streams


@dataclass(frozen=True, eq=False)
class Framed:
    """A `Drift` of listed data sets; frame 0 is the state before the first round."""

    frames: Sequence[Frame]
    held_out: HeldOut = NONE
    moves: ClassVar = False
    in_seconds: ClassVar = False
    warning: ClassVar = ""

    def at(self, when: When) -> Frame:
        """The frame of an instant."""
        return self.frames[when.frame]

    def before(self, when: When, last: Holdings) -> Frame:
        """The frame before the instant's: by FedTeddi a mix has changed during a whole frame."""
        return self.frames[when.frame - 1]

    def sizes_ahead(self) -> Integers:
        """Sizes of the data sets of all frames with rounds."""
        return np.concatenate([frame.sizes for frame in self.frames[1:]])


class Frames(Law):
    """Data sets that ``data.partition`` deals, for the whole run or for one frame each."""

    @override
    def make(self, setting: Setting) -> Framed:
        """Data sets by frame; those of a partition without changes are the same in frames 0 and 1."""
        data, dataset, private = setting.config.data, setting.dataset, setting.private
        law, labels = partitions.make_partition(data), dataset.train_labels[private]
        how = dataset.class_count, setting.config.devices.count, data.samples_per_device, setting.streams
        if dataset.domains is None:
            parts = law.divide(labels, *how)
        else:
            parts = law.divide_domains(labels, dataset.domains.train[private], *how)
        frames: list[Frame] = []
        seen, held_out = np.empty(0, dtype=np.int64), NONE
        dealt = [[private[own] for own in clients] for clients in parts]
        if setting.holds_out:
            held_out = _hold_out(dealt, setting.streams)
            dealt = [
                [own[~np.isin(own, held_out.of(device))] for device, own in enumerate(clients)] for clients in dealt
            ]
        for clients in dealt:
            frames.append(_frame(clients, dataset, seen))
            seen = frames[-1].classes_seen
        return Framed(frames * 2 if len(frames) == 1 else frames, held_out)


def _hold_out(dealt: Sequence[Sequence[Integers]], streams: Streams) -> HeldOut:
    """Held-out samples of each device, drawn from the union of its data sets ``dealt`` [frames][devices].

    Stream ``drift/held-out``.
    """
    parts = []
    for device, frames in enumerate(zip(*dealt, strict=True)):
        own = np.unique(np.concatenate(frames))
        order = streams.generator("drift/held-out", device).permutation(len(own))
        parts.append(own[np.sort(order[: part_of(len(own))])])
    return HeldOut(parts)


def blank(device_count: int, size: int, frames: int) -> Framed:
    """Data sets of ``size`` samples without class, the same in frame 0 and in ``frames`` further frames."""
    empty = np.empty(0, dtype=np.int64)
    sizes = np.broadcast_to(np.asarray(size, dtype=np.int64), device_count)
    return Framed([Frame(sizes, np.empty((device_count, 0), dtype=np.int64), empty, empty)] * (1 + frames))


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
