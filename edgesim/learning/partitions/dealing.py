"""Steps of partitions that deal out a training set: a shuffled pool, cuts, and no device without samples."""

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.streams import Streams


def shuffled_pool(labels: Integers, device_count: int, samples_per_device: int | None, streams: Streams) -> Integers:
    """The samples to deal, in random order: all, or ``samples_per_device`` for each device, drawn without repeats.

    Raises `EdgesimError` when there are fewer than that, or fewer than devices.
    """
    if device_count > len(labels):
        raise EdgesimError(
            f"devices.count: {device_count} devices are more than the {len(labels)} training samples, and each needs "
            "one; lower it",
            "devices.count",
        )
    if samples_per_device is not None and device_count * samples_per_device > len(labels):
        raise EdgesimError(
            f"data.samples_per_device: {samples_per_device} for each of {device_count} devices are more than the "
            f"{len(labels)} training samples; lower it to {len(labels) // device_count} or leave it out"
        )
    order = streams.generator("partition/pool").permutation(len(labels))
    return order if samples_per_device is None else order[: device_count * samples_per_device]


def by_class(pool: Integers, labels: Integers) -> Integers:
    """The pool sorted by class, in random order within a class."""
    return pool[np.argsort(labels[pool], kind="stable")]


def cut(shares: Floats, totals: Integers) -> Integers:
    """Whole numbers in proportion to shares [..., n] that add up to ``totals`` [...], [..., n].

    The cuts lie at the rounded-down running sums of the shares.
    """
    edges = np.floor(np.cumsum(shares, axis=-1) * totals[..., None]).astype(np.int64)
    edges[..., -1] = totals
    return np.diff(np.minimum(edges, totals[..., None]), prepend=0, axis=-1)


def fill_empty_hands(owner: Integers, device_count: int, streams: Streams) -> Integers:
    """Owners of the samples [n], after each device without samples received a random one of the largest holder.

    Authors redraw everything until each client holds some number (ten in NIID-Bench), which hardly ever happens
    with hundreds of clients and a strong skew; moving single samples leaves the law of all others as it is.
    """
    sizes = np.bincount(owner, minlength=device_count)
    random = streams.generator("partition/empty-hands")
    owner = owner.copy()
    for device in np.flatnonzero(sizes == 0).tolist():
        largest = int(np.argmax(sizes))
        owner[random.choice(np.flatnonzero(owner == largest))] = device
        sizes[largest] -= 1
        sizes[device] = 1
    return owner


def hands(samples: Integers, owner: Integers, device_count: int) -> list[Integers]:
    """Each device's samples, ascending."""
    order = np.lexsort((samples, owner))
    return np.split(samples[order], np.cumsum(np.bincount(owner, minlength=device_count))[:-1])
