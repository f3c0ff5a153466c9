"""Equal share: the band divided by the number of uploads."""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.radio.allocators.allocator import Allocator, Request


class EqualShare(Allocator):
    """The same bandwidth for every upload."""

    @override
    def allocate(self, request: Request) -> Floats:
        """The same bandwidth for every upload, [S]."""
        count = len(request.need_hz)
        return np.full(count, request.bandwidth_hz / count)
