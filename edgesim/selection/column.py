"""A quantity of the candidates that is worked out only for the rows that somebody asks about."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Column:
    """One float per candidate, [n]: index it by rows, or use it as an array, which works out all of them once.

    Of a million candidates a policy may look at thirty.
    """

    def __init__(self, length: int, compute: Callable[[Integers], Floats]) -> None:
        self._length = length
        self._compute = compute
        self._all: Floats | None = None

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, rows: Any) -> Any:
        """Values of the rows asked about: an index, or an array of them."""
        if self._all is not None:
            return self._all[rows]
        if np.ndim(rows) == 0:
            return self._compute(np.array([rows], dtype=np.int64))[0]
        return self._compute(np.asarray(rows, dtype=np.int64))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        if self._all is None:
            self._all = self._compute(np.arange(self._length, dtype=np.int64))
        return np.asarray(self._all, dtype=dtype)
