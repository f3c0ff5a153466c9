"""The test part of sets that come without one: the same for every run, whatever its seed."""

from collections.abc import Callable

import numpy as np

from edgesim.base.arrays import Integers
from edgesim.streams import Streams


def a_fifth(size: int) -> int:
    """A fifth of the size of a group, rounded, and at least 1 for a size above 1."""
    return max(round(size / 5), int(size > 1))


def held_out(name: str, groups: Integers, count: Callable[[int], int] = a_fifth) -> tuple[Integers, Integers]:
    """Indices for training and for testing, both ascending: of each group a random ``count(size)`` is for testing.

    ``groups`` are whole numbers, [n], such as the classes; ``name`` is the data set's, which names the stream.
    """
    order = Streams(0).generator(f"{name}-test-split").permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    starts = np.flatnonzero(np.diff(groups[order])) + 1
    is_test = np.zeros(len(groups), dtype=bool)
    for members in np.split(order, starts):
        is_test[members[: count(len(members))]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)
