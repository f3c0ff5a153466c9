"""Probabilities of availability models: one for all devices, or a list of one for each."""

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError


def of_each(rates: float | list[float], ids: Integers) -> Floats:
    """The probability of each device, [n]."""
    values = np.asarray(rates, dtype=np.float64)
    return values[ids] if values.ndim else np.broadcast_to(values, len(ids))


def need_one_each(key: str, rates: float | list[float], device_count: int) -> None:
    """Raises `EdgesimError` for a list of fewer numbers than devices; ``key`` names it in ``[availability]``."""
    if isinstance(rates, list) and len(rates) < device_count:
        raise EdgesimError(
            f"availability.{key}: is a list of {len(rates)} numbers, but devices.count is {device_count}; give one "
            "number for each device, or one for all",
            f"availability.{key}",
            "devices.count",
        )
