"""The array types of signatures; docstrings give the shapes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Numbers = NDArray[Any]
"""Integers, or floats of any precision."""
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
