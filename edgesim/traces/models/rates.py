"""Probabilities of availability models: one for all devices, or a list of one for each."""

from typing import Any

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError


def branch(value: Any) -> str:
    """The tag of the annotation that checks a value, so that an error speaks of what was given."""
    return "list[float]" if isinstance(value, list) else "float"


def of_each(rates: float | list[float], ids: Integers) -> Floats:
    """The probability of each device, [n]."""
    found = np.asarray(rates, dtype=np.float64)
    return found[ids] if found.ndim else np.broadcast_to(found, len(ids))


def need_one_each(key: str, rates: float | list[float], device_count: int) -> None:
    """Raises `EdgesimError` for a list of fewer numbers than devices; ``key`` names it in ``[availability]``."""
    if isinstance(rates, list) and len(rates) < device_count:
        raise EdgesimError(
            f"availability.{key}: is a list of {len(rates)} numbers, but devices.count is {device_count}; give one "
            "number for each device, or one for all",
            f"availability.{key}",
            "devices.count",
        )
