"""The forecast that anything must beat: who was there will be there."""

import numpy as np

from edgesim.arrays import Floats, Integers
from edgesim.prediction.check_in_log import CheckInLog, need_future


def chances(log: CheckInLog, ids: Integers, future_rounds: int) -> Floats:
    """1 for those who checked in last round, 0 for the others, [n]; however far it looks ahead.

    Raises `EdgesimError` for no rounds.
    """
    need_future(future_rounds)
    return log.latest(ids).astype(np.float64)
