"""Equal share: the band divided by the number of uploads."""

import numpy as np

from edgesim.base.arrays import Floats
from edgesim.radio.allocators.request import Request


def allocate(request: Request) -> Floats:
    """The same bandwidth for every upload, [S]."""
    count = len(request.need_hz)
    return np.full(count, request.bandwidth_hz / count)
