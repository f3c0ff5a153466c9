"""Ties: values within 1e-12 relative are equal, and the lowest device id wins.

Linear-algebra libraries give equal rows different last bits: by exact comparison the library would decide.
"""

import numpy as np

from edgesim.selection.view import Floats, Integers

TIE = 1e-12
"""Relative difference up to which two values count as equal."""


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
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    before = np.concatenate([ranked[:1], ranked[:-1]])
    level = np.empty(len(values), dtype=np.int64)
    level[order] = np.cumsum(before - ranked > TIE * np.maximum(np.abs(before), np.abs(ranked)))
    return np.lexsort((np.arange(len(values)) if then is None else then, level))
