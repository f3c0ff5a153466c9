"""What an allocator is asked: the uploads among which one band is to be shared."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Request:
    """The uploads of one station and round, one row each, [S >= 1]; instants count from the round's start."""

    payload_bits: Floats
    ready_s: Floats
    """When each upload can begin, as the scheduler knows it."""
    rx_power_w: Floats
    """Average received power."""
    need_hz: Floats
    """Least bandwidth that meets the deadline; inf where none does."""
    noise_w_per_hz: float
    bandwidth_hz: float
    """The band to share."""
    deadline_s: float
