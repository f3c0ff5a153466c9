"""Which samples a job trains on, in which order: a function of (seed, device, number of the job)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from edgesim.arrays import Integers
from edgesim.config import LearningConfig
from edgesim.learning.drift.holdings import Holdings
from edgesim.streams import Streams

_DRAWS_AT_ONCE = 1 << 20


def samples_per_job(sizes: Integers, learning: LearningConfig) -> Integers:
    """Samples that a device of each size processes in a round: tau b, or epochs times the size; read-only."""
    if learning.epochs is not None:
        return np.asarray(sizes) * learning.epochs
    return np.broadcast_to(np.int64(_steps(learning) * learning.batch_size), np.shape(sizes))


def step_edges(size: int, learning: LearningConfig) -> Integers:
    """Where the steps of a job begin and end among its samples, [steps + 1]; an epoch ends in its rest."""
    batch = learning.batch_size
    if learning.epochs is None:
        return np.arange(_steps(learning) + 1) * batch
    return epoch_edges(size, learning.epochs, batch)


def epoch_edges(size: int, epochs: int, batch: int) -> Integers:
    """Where the steps of epochs over so many samples begin and end, [steps + 1]; an epoch ends in its rest."""
    starts = np.arange(epochs)[:, None] * size + np.arange(0, size, batch)
    return np.append(starts.reshape(-1), epochs * size)


def epoch_places(streams: Streams, name: str, device: int, draw: int, size: int, epochs: int) -> Integers:
    """Places among so many samples in epochs, each in a new order of a stream, in order of use, [epochs size].

    ``draw`` is the number of the device's job.
    """
    (places,) = _positions(streams, name, np.array([device]), np.array([draw]), size, epochs * size)
    return np.asarray(places)


def batch_samples(
    held: Holdings, streams: Streams, ids: Integers, draws: ArrayLike, learning: LearningConfig
) -> list[Integers]:
    """Training samples of each device's job, in order of use; ``draws`` is the number of each device's job, one or [n].

    They run through successive random permutations of the device's set, batches crossing their edges, so
    batch shares equal data-set shares when the samples of a job are a multiple of the set's size. By epochs:
    one permutation per epoch.
    """
    counts = samples_per_job(held.sizes[ids], learning)
    return _draw(held, streams, "batches", ids, np.broadcast_to(draws, len(ids)), counts)


def statistics_samples(
    held: Holdings, streams: Streams, ids: Integers, draws: ArrayLike, learning: LearningConfig
) -> list[Integers]:
    """One batch per device (at most its whole set) for eq. 18 of FedTeddi, drawn apart from training."""
    counts = np.minimum(held.sizes[ids], learning.batch_size)
    return _draw(held, streams, "statistics-batch", ids, np.broadcast_to(draws, len(ids)), counts)


def _steps(learning: LearningConfig) -> int:
    assert learning.steps is not None, "the config is resolved before a run"
    return learning.steps


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
    """Rows of equal set size, in chunks that bound memory; equal sizes have equal counts."""
    for size in set(sizes.tolist()):
        rows = np.flatnonzero(sizes == size)
        at_once = max(1, _DRAWS_AT_ONCE // (int(counts[rows[0]]) + size))
        yield from (rows[first : first + at_once] for first in range(0, len(rows), at_once))
