"""Quantities of candidates, computed only for the rows that are asked for."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgesim.base.arrays import Booleans, Integers


@lru_cache(maxsize=2)
def _all_rows(length: int) -> Integers:
    """The rows of a whole column, [n], read-only: a column that others are worked out from knows them when it is asked
    about them.
    """
    rows = np.arange(length, dtype=np.int64)
    rows.flags.writeable = False
    return rows


class Column:
    """One float per candidate, [n]: index it by rows, or use it as an array. Each is worked out once.

    Of a million candidates a policy may look at thirty.
    """

    def __init__(self, length: int, compute: Callable[[Integers], NDArray[Any]]) -> None:
        self._length = length
        self._compute = compute
        self._all: NDArray[Any] | None = None
        self._some: tuple[NDArray[Any], Booleans] | None = None
        """Values, and which of them are known, once some have been asked for."""

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, rows: Any) -> Any:
        """Values of the rows asked about: an index, an array of them, or a mask."""
        if self._all is not None:
            return self._all[rows]
        if np.ndim(rows) == 0:
            return self[np.array([rows])][0]
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        if len(rows) == self._length:
            return self.whole() if rows is _all_rows(self._length) else self.whole()[rows]
        if self._some is None:
            self._some = values, known = self._unknown(), np.zeros(self._length, dtype=bool)
            values[rows] = asked = self._compute(rows)
            known[rows] = True
            return np.array(asked, dtype=values.dtype)
        values, known = self._some
        missing = rows[~known[rows]]
        if len(missing):
            values[missing] = self._compute(missing)
            known[missing] = True
        return values[rows]

    def whole(self) -> NDArray[Any]:
        """Values of all rows, [n]."""
        if self._all is None:
            self._all = self._compute(_all_rows(self._length))
        return self._all

    def _unknown(self) -> NDArray[Any]:
        """Memory of all values; where nobody asks about rows, theirs is never touched."""
        return np.empty(self._length)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.whole(), dtype=dtype)
