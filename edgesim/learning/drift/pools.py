"""Pools of samples for the data sets of drift laws; each device goes through a pool in its own order.

A device begins at its own place of the shuffled pool and goes on in its own step, around and around; the step has no
factor in common with the size, so that no sample comes twice before all have come once. The samples of a device from a
pool of 100,000 are thus known without a list of them.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.learning.drift.held_out import NONE, HeldOut, part_of
from edgesim.learning.drift.law import Setting
from edgesim.streams import Streams

PoolKind = Literal["shared", "iid_partition"]
"""Kind of pools: all private samples for all devices, or an equal random part for each, no sample in two."""


@dataclass(frozen=True, eq=False)
class Fleet:
    """The devices of a run, and their Q pools of samples: one that all devices share, or one for each device."""

    samples: Integers
    """Indices into the training set, pool after pool, each in random order; without those held out."""
    firsts: Integers
    """Place of each pool's first sample in `samples`, [Q]."""
    sizes: Integers
    """[Q]."""
    class_counts: Integers
    """Samples of each pool and class, [Q, C]."""
    labels: Integers
    """Labels of the whole training set."""
    streams: Streams
    device_count: int
    size: int
    """Samples of a device's data set, ``data.samples_per_device``; 0 where the law decides."""
    rounds: int
    """T: the rounds of the run, or as many deadlines as fit before its end."""
    round_s: float
    """Duration of a round that lasts to its deadline."""
    held_out: HeldOut = NONE
    """Samples on which devices measure themselves."""

    @property
    def class_count(self) -> int:
        """C."""
        return int(self.class_counts.shape[1])

    def of(self, devices: Integers) -> Integers:
        """The pool of each device, [n]."""
        return np.minimum(devices, len(self.sizes) - 1)

    @cached_property
    def _by_class(self) -> tuple[Integers, Integers]:
        """The samples of each pool class after class, and where each class begins in them, [Q, C]."""
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)
        order = np.lexsort((self.labels[self.samples], owner))
        firsts = np.cumsum(self.class_counts.reshape(-1)).reshape(self.class_counts.shape) - self.class_counts
        return np.asarray(self.samples[order]), firsts

    def of_classes(self, device: int, counts: Integers) -> Integers:
        """The device's first ``counts`` samples of each class, [C]; ascending."""
        samples, firsts = self._by_class
        pool = int(self.of(np.array([device]))[0])
        taken = []
        for label in np.flatnonzero(counts).tolist():
            first, size = int(firsts[pool, label]), int(self.class_counts[pool, label])
            places = np.arange(size)
            if counts[label] < size:
                begin, step = walks(self.streams, f"drift/class-{label}", np.array([device]), np.array([size]))
                places = (begin + step * np.arange(counts[label])) % size
            taken.append(samples[first + places])
        return np.sort(np.concatenate(taken))


def walks(streams: Streams, name: str, devices: Integers, sizes: Integers) -> tuple[Integers, Integers]:
    """First place of each device in a pool of its size, and its step through the pool, [n] each."""
    draws = streams.uniform(name, devices, count=2)
    begin, step = (draws[:, 0] * sizes).astype(np.int64), np.empty(len(devices), dtype=np.int64)
    for size in np.unique(sizes).tolist():
        steps, rows = _steps(size), sizes == size
        step[rows] = steps[(draws[rows, 1] * len(steps)).astype(np.int64)]
    return begin, step


@lru_cache(maxsize=256)
def _steps(size: int) -> Integers:
    """Numbers up to a size that have no factor in common with it."""
    numbers = np.arange(1, size + 1)
    return np.asarray(numbers[np.gcd(numbers, size) == 1])


def make_fleet(setting: Setting, pool: PoolKind) -> Fleet:
    """The devices of a run and their pools; raises `EdgesimError` where there are fewer samples than devices."""
    count, labels, classes = setting.config.devices.count, setting.dataset.train_labels, setting.dataset.class_count
    private = setting.private[setting.streams.generator("drift/pool").permutation(len(setting.private))]
    size = len(private) if pool == "shared" else len(private) // count
    if size == 0:
        raise EdgesimError(
            f"devices.count: {count} devices are more than the {len(private)} training samples, of which each needs "
            "a part; lower it or set drift.pool = 'shared'",
            "devices.count",
            "drift.pool",
        )
    pools, held_out = 1 if pool == "shared" else count, NONE
    private = private[: pools * size]
    if setting.holds_out:
        count_out = part_of(size)
        if count_out == size:
            raise EdgesimError(
                f"drift.pool: each device holds out {count_out} of its pool of {size} samples to measure itself on "
                "(joining.performance), and none is left to train on; lower devices.count or set drift.pool = 'shared'",
                "drift.pool",
                "devices.count",
            )
        rows = private.reshape(pools, size)
        # The pool is in random order, so that its first samples are as random as any.
        held_out, private, size = HeldOut(list(rows[:, :count_out])), rows[:, count_out:].reshape(-1), size - count_out
    cells = np.repeat(np.arange(pools), size) * classes + labels[private]
    counts = np.bincount(cells, minlength=pools * classes).reshape(pools, classes).astype(np.int64)
    firsts = np.arange(pools) * size
    run = setting.config
    of_run = (
        setting.streams,
        count,
        run.data.samples_per_device or 0,
        max(1, run.expected_rounds),
        run.round.tmax_s,
        held_out,
    )
    return Fleet(private, firsts, np.full(pools, size), counts, labels, *of_run)


def need_in_pools(pools: Fleet, most: Integers, what: str) -> None:
    """Refuse pools with fewer samples of a class than a device may ever hold, ``most`` [N or 1, C].

    ``what`` says why. Raises `EdgesimError`.
    """
    if len(pools.sizes) == 1:
        most = most.max(axis=0, keepdims=True)
    lacks = np.argwhere(pools.class_counts < most)
    if len(lacks):
        row, label = lacks[0].tolist()
        whose = "the pool of all devices" if len(pools.sizes) == 1 else f"the pool of device {row}"
        needed = int(np.broadcast_to(most, pools.class_counts.shape)[row, label])
        raise EdgesimError(
            f"drift.pool: {whose} has {pools.class_counts[row, label]} samples of class {label}, and {what} "
            f"{needed} of it",
            "drift.pool",
            "data.samples_per_device",
        )
