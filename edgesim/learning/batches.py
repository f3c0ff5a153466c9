"""Samples of a job in order of use, as a function of (seed, device, number of the job)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Integers
from edgesim.config import LearningConfig
from edgesim.learning.drift.holdings import Holdings
from edgesim.streams import Streams

_DRAWS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class LocalWork:
    """Work of each device's jobs: steps, or epochs over its data set, and the samples of a step."""

    steps: int | None
    """Steps of every device's job; None where jobs count epochs."""
    epochs: Integers
    """Epochs of each device's job, [N]; meaningless with `steps`."""
    batch: Integers
    """Samples of a step of each device, [N]."""

    def samples_per_job(self, ids: Integers, sizes: Integers) -> Integers:
        """Samples that devices with data sets of these ``sizes`` [n] process in a round, [n]: tau b, or epochs times
        the size.
        """
        return np.asarray(sizes * self.epochs[ids] if self.steps is None else self.steps * self.batch[ids])

    def mean_batch(self, ids: Integers) -> float:
        """Mean samples of a step of some devices [n]."""
        # A view of a single number has no strides, and needs no mean.
        return float(self.batch[0] if self.batch.strides == (0,) else self.batch[ids].mean())

    def first_step(self, ids: Integers, sizes: Integers) -> Integers:
        """Samples of the first step of jobs of devices with data sets of these ``sizes`` [n], [n]."""
        return self.batch[ids] if self.steps is not None else np.minimum(self.batch[ids], sizes)

    def step_edges(self, device: int, size: int) -> Integers:
        """Edges of a job's steps among its samples, [steps + 1]; the last step of an epoch takes the rest."""
        batch = int(self.batch[device])
        if self.steps is not None:
            return np.arange(self.steps + 1) * batch
        return epoch_edges(size, int(self.epochs[device]), batch)


def make_local_work(learning: LearningConfig, streams: Streams, count: int) -> LocalWork:
    """Local work of ``count`` devices by a resolved config; streams ``epochs`` and ``batch-size``."""
    epochs = _own_numbers(learning.epochs or 1, streams, "epochs", count)
    return LocalWork(learning.steps, epochs, _own_numbers(learning.batch_size, streams, "batch-size", count))


def least_batch(learning: LearningConfig) -> int:
    """Samples of a step of the server's own training and of pre-training."""
    return learning.batch_size if isinstance(learning.batch_size, int) else learning.batch_size[0]


def _own_numbers(number: int | list[int], streams: Streams, name: str, count: int) -> Integers:
    """Number of each device, [count]: the same for all, read-only, or drawn between the least and most."""
    if isinstance(number, int):
        return np.broadcast_to(np.int64(number), count)
    least, most = number
    uniforms = streams.uniform(name, np.arange(count))
    return least + (uniforms * (most - least + 1)).astype(np.int64)


def epoch_edges(size: int, epochs: int, batch: int) -> Integers:
    """Edges of the steps of epochs over ``size`` samples, [steps + 1]; the last step of an epoch takes the rest."""
    starts = np.arange(epochs)[:, None] * size + np.arange(0, size, batch)
    return np.append(starts.reshape(-1), epochs * size)


def epoch_places(streams: Streams, name: str, device: int, draw: int, size: int, epochs: int) -> Integers:
    """Places among ``size`` samples in order of use, [epochs size]: each epoch in a new order from a stream.

    ``draw`` is the number of the device's job.
    """
    (places,) = _positions(streams, name, np.array([device]), np.array([draw]), size, epochs * size)
    return np.asarray(places)


def batch_samples(held: Holdings, streams: Streams, ids: Integers, draws: ArrayLike, work: LocalWork) -> list[Integers]:
    """Training samples of each device's job, in order of use; ``draws`` are the jobs' numbers, a number or [n].

    They run through successive random permutations of the device's set, batches crossing their edges, so
    batch shares equal data-set shares when the samples of a job are a multiple of the set's size. By epochs:
    one permutation per epoch.
    """
    counts = work.samples_per_job(ids, held.sizes[ids])
    return _draw(held, streams, "batches", ids, np.broadcast_to(draws, len(ids)), counts)


def statistics_samples(
    held: Holdings, streams: Streams, ids: Integers, draws: ArrayLike, work: LocalWork
) -> list[Integers]:
    """A batch per device (at most its whole set) for eq. 18 of FedTeddi, drawn apart from training."""
    counts = np.minimum(held.sizes[ids], work.batch[ids])
    return _draw(held, streams, "statistics-batch", ids, np.broadcast_to(draws, len(ids)), counts)


def _draw(
    held: Holdings, streams: Streams, name: str, ids: Integers, draws: Integers, counts: Integers
) -> list[Integers]:
    samples: list[Integers] = [np.empty(0, dtype=np.int64)] * len(ids)
    sizes = held.sizes[ids]
    for rows in _groups_of_equal_size(sizes, counts):
        positions = _positions(streams, name, ids[rows], draws[rows], int(sizes[rows[0]]), int(counts[rows[0]]))
        for row, drawn in zip(rows.tolist(), held.at_places(ids[rows], positions), strict=True):
            samples[row] = drawn
    return samples


def _positions(streams: Streams, name: str, ids: Integers, draws: Integers, size: int, count: int) -> Integers:
    """Positions within sets of one size, [n, count]: sorting uniforms gives each permutation."""
    repeats = -(-count // size)
    uniforms = streams.uniform(name, ids, draws, repeats * size).reshape(len(ids), repeats, size)
    return np.argsort(uniforms, axis=-1).reshape(len(ids), -1)[:, :count]


def _groups_of_equal_size(sizes: Integers, counts: Integers) -> Iterator[Integers]:
    """Rows of equal set size and equal count, in chunks that bound memory."""
    for size in set(sizes.tolist()):
        of_size = np.flatnonzero(sizes == size)
        for count in set(counts[of_size].tolist()):
            rows = of_size[counts[of_size] == count]
            at_once = max(1, _DRAWS_AT_ONCE // (count + size))
            yield from (rows[first : first + at_once] for first in range(0, len(rows), at_once))
