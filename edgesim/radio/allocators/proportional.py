"""Proportional to payload: an upload of more bits gets more of the band."""

import numpy as np

from edgesim.base.arrays import Floats
from edgesim.radio.allocators.request import Request


def allocate(request: Request) -> Floats:
    """Bandwidths in proportion to the bits to send, [S]."""
    return np.asarray(request.bandwidth_hz * request.payload_bits / request.payload_bits.sum())
