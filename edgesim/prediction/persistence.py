"""The baseline forecast: devices that checked in in the last round will check in again."""

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.prediction.check_in_log import CheckInLog, need_future
from edgesim.prediction.predictor import Predictor


class Persistence(Predictor):
    """Devices that checked in in the last round will check in again."""

    @override
    def chances(self, log: CheckInLog, ids: Integers, future_rounds: int) -> Floats:
        """1 for devices that checked in in the last round, 0 for the others, [n], for any ``future_rounds``.

        Raises `EdgesimError` for ``future_rounds`` below 1.
        """
        need_future(future_rounds)
        return log.latest(ids).astype(np.float64)
