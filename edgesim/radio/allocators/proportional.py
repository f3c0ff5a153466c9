"""Proportional to payload: an upload of more bits gets more of the band."""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.radio.allocators.allocator import Allocator, Request


class Proportional(Allocator):
    """Bandwidths in proportion to the bits to send."""

    @override
    def allocate(self, request: Request) -> Floats:
        """Bandwidths in proportion to the bits to send, [S]."""
        return np.asarray(request.bandwidth_hz * request.payload_bits / request.payload_bits.sum())
