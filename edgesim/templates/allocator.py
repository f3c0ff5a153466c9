"""Least and equal: each upload gets its least bandwidth, and an equal part of what all of these leave over."""

import numpy as np

from edgesim.arrays import Floats
from edgesim.radio.allocators import Allocator, Request


class LeastAndEqual(Allocator):
    """Uploads end before the deadline where the band has room, those of good channels more so."""

    def allocate(self, request: Request) -> Floats:
        """Bandwidth of each upload in Hz, [S]; together they are the band."""
        least_hz = np.where(np.isfinite(request.need_hz), request.need_hz, 0.0)
        left_hz = request.bandwidth_hz - least_hz.sum()
        if left_hz < 0:
            return np.asarray(least_hz * (request.bandwidth_hz / least_hz.sum()))
        return np.asarray(least_hz + left_hz / len(least_hz))
