"""The array types of signatures, whose docstrings give the shapes; repeated numbers, positions in runs and pairs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Numbers in double precision."""
Singles = NDArray[np.float32]
"""Numbers in single precision."""
Numbers = NDArray[Any]
"""Integers, or floats of any precision."""
Integers = NDArray[np.int64]
"""Whole numbers of 64 bits."""
Booleans = NDArray[np.bool_]
"""True or false."""
ComplexNumbers = NDArray[np.complex128]


def repeated(value: float, count: int) -> Floats:
    """Array that repeats one number, [count]; for tens of devices in a third of the time of `numpy.full`."""
    numbers: Floats = np.empty(count)
    numbers.fill(value)
    return numbers


def ranks(counts: Integers) -> Integers:
    """Position of each element in its run, from 0, of successive runs of so many elements, [sum of ``counts``]."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def pairs(first: Integers, second: Floats | float) -> ComplexNumbers:
    """Pairs as complex numbers, which NumPy orders by their real and then their imaginary parts, [n]."""
    numbers: ComplexNumbers = np.empty(len(first), dtype=np.complex128)
    numbers.real, numbers.imag = first, second
    return numbers
