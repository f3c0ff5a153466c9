"""Ties: values within 1e-12 relative are equal, and the lowest device id wins.

Linear-algebra libraries give equal rows different last bits: by exact comparison the library would decide.
"""

from collections.abc import Callable

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.selection.view import Choice

TIE = 1e-12
"""Relative difference up to which two values count as equal."""

_AT_FIRST = 1024


def first_lowest(values: Floats, scale: float) -> int:
    """First row whose value lies within ``TIE * scale`` of the lowest of ``values``, [n], n at least 1.

    ``scale`` is the size of the terms that the values are differences of: what is left when they cancel is
    rounding error of that size. Rows ascend by device id, so the first row is the lowest id.
    """
    return int(np.argmax(values <= values.min() + TIE * scale))


def descending(values: Floats, then: Floats | None = None) -> Integers:
    """Rows of ``values``, [n], by falling value; rows that tie go by rising ``then``, [n], or else by row.

    Neighbours in the sorted order tie when they differ by at most `TIE` times the larger magnitude of the
    two; ties chain. Rows ascend by device id, so without ``then`` the lowest id comes first.
    """
    order, rank = _ranks(values)
    if then is not None:
        return np.lexsort((then, rank))
    ranked = rank[order]
    if np.all((np.diff(order) > 0) | (np.diff(ranked) > 0)):
        return order
    return np.lexsort((np.arange(len(values)), rank))


def by_falling(ids: Integers, values: Floats, draw: Callable[[Integers], Floats] | None = None) -> Choice:
    """Offer ``ids`` by falling ``values``, both [n]; who ties goes by rising ``draw``, as in `descending`.

    ``draw`` gives one number per id asked about; without it the lowest id comes first. The first thousand or so are
    offered before the others are put in order, or drawn for, at all.
    """
    left = np.arange(len(ids))
    if len(ids) > 4 * _AT_FIRST:
        ahead = np.sort(np.argpartition(-values, 2 * _AT_FIRST)[: 2 * _AT_FIRST])
        _, rank = _ranks(values[ahead])
        # The lowest rank may continue among the others.
        whole = ahead[rank < rank.max()]
        if len(whole):
            yield ids[whole[descending(values[whole], then=draw and draw(ids[whole]))]]
            left = np.setdiff1d(left, whole, assume_unique=True)
    if len(left):
        yield ids[left[descending(values[left], then=draw and draw(ids[left]))]]


def _ranks(values: Floats) -> tuple[Integers, Integers]:
    """Rows by falling value, and the rank of each row, which rows that tie share, from 0 for the highest; both [n]."""
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    before = np.concatenate([ranked[:1], ranked[:-1]])
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.cumsum(before - ranked > TIE * np.maximum(np.abs(before), np.abs(ranked)))
    return order, rank
