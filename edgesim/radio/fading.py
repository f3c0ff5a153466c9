"""Block fading: one power factor of mean 1 for each upload, on top of the average gain."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Floats, Integers
from edgesim.streams import Streams

Fading = Literal["none", "rayleigh"]


def power_factor(
    kind: Fading, streams: Streams, ids: ArrayLike, round: int | Integers, handovers: ArrayLike = 0
) -> Floats:
    """Factor on the received power of each device's upload in a round, after ``handovers`` of it, [n]; its mean is 1.

    ``rayleigh``: |h|^2 of a complex normal h with E|h|^2 = 1, which is Exp(1) (Tse and Viswanath, "Fundamentals
    of Wireless Communication", 2005, section 2.4.2). ``none``: 1. Draws: stream ``fading``.
    """
    if kind == "none":
        return np.ones(np.shape(ids))
    return streams.exponential("fading", ids, round, first_pair=handovers)


def outage_factor(kind: Fading, outage: float) -> float:
    """The power factor that fading falls below with probability ``outage``, above 0 and below 1.

    ``rayleigh``: the quantile -ln(1 - outage) of Exp(1) (Tse and Viswanath, section 5.4.1). ``none``: 1.
    """
    return 1.0 if kind == "none" else -math.log1p(-outage)
