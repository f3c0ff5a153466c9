"""Equal bits: bandwidths that carry the same, greatest number of bits for every upload by the deadline."""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.radio.allocators.allocator import Allocator, Request


class EqualBits(Allocator):
    """The greatest common number of bits that the band carries in time, whatever each upload takes."""

    @override
    def allocate(self, request: Request) -> Floats:
        """Bandwidths that carry the same number of bits in time, [S].

        An upload that no bandwidth ends by the deadline has an equal share of the band instead.
        """
        count, band_hz = len(request.need_hz), request.bandwidth_hz
        shares_hz = np.full(count, band_hz / count)
        in_time = np.isfinite(request.need_hz)
        if not in_time.any():
            return shares_hz
        those = request.rows(in_time)
        # A sum of n terms, rounded in any order, is off by less than n eps.
        band_hz = shares_hz[in_time].sum() / (1 + count * np.finfo(np.float64).eps)
        fits_bits, exceeds_bits, fitting_hz = 0.0, float(those.payload_bits.max()), np.zeros(len(those.ids))
        while (wanted_hz := those.least_hz(those.deadline_s, exceeds_bits)).sum() <= band_hz:
            fits_bits, fitting_hz, exceeds_bits = exceeds_bits, wanted_hz, 2 * exceeds_bits
        while fits_bits < (middle_bits := (fits_bits + exceeds_bits) / 2) < exceeds_bits:
            wanted_hz = those.least_hz(those.deadline_s, middle_bits)
            if wanted_hz.sum() <= band_hz:
                fits_bits, fitting_hz = middle_bits, wanted_hz
            else:
                exceeds_bits = middle_bits
        shares_hz[in_time] = fitting_hz
        return shares_hz
