"""Least bandwidth: each upload gets the bandwidth that ends it exactly at the deadline (FedTeddi, Algorithm 1)."""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.radio.allocators.allocator import Allocator, Request


class Least(Allocator):
    """The least bandwidths, scaled down by one factor if they exceed the band."""

    @override
    def allocate(self, request: Request) -> Floats:
        """The least bandwidths, [S]; all scaled down by one factor if they exceed the band, which makes uploads late.

        An upload that no bandwidth ends by the deadline counts with an equal share of the band.
        """
        wanted_hz = np.where(np.isfinite(request.need_hz), request.need_hz, request.bandwidth_hz / len(request.need_hz))
        total_hz = wanted_hz.sum()
        # Admission adds the needs up in another order, so rounding may put the sum just above the band.
        fits = total_hz <= request.bandwidth_hz * (1 + 1e-12)
        return wanted_hz if fits else np.asarray(wanted_hz * (request.bandwidth_hz / total_hz))
