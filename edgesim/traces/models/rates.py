"""Probabilities of availability models: one for all devices, or a list of one for each."""

import numpy as np

from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError


def one_each(key: str, rates: float | list[float], device_count: int) -> Floats:
    """Probability of each device, [devices], from the value of a ``key`` of ``[availability]``.

    Raises `EdgesimError` for a list of fewer numbers than devices.
    """
    if isinstance(rates, list) and len(rates) < device_count:
        raise EdgesimError(
            f"availability.{key}: is a list of {len(rates)} numbers, but devices.count is {device_count}; give one "
            "number for each device, or one for all",
            f"availability.{key}",
            "devices.count",
        )
    own = rates[:device_count] if isinstance(rates, list) else rates
    return np.broadcast_to(np.asarray(own, dtype=np.float64), device_count)
