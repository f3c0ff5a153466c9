"""Same hour: a device is likely to come if it came at the same time in earlier periods, such as days."""

import numpy as np
from pydantic import Field

from edgesim.arrays import Floats, Integers
from edgesim.prediction.check_in_log import CheckInLog, need_future
from edgesim.prediction.predictor import Predictor
from edgesim.quantities import Count


class SameHour(Predictor):
    """Options of the predictor, keys of ``selection.predictor_options``."""

    period: Count = Field(24, ge=1)
    """Rounds after which the devices' habits repeat."""

    def chances(self, log: CheckInLog, ids: Integers, future_rounds: int) -> Floats:
        """How likely each device checks in in at least one of the next rounds, [n]: how often it did, a period ago.

        Of the rounds that lie one period, two periods, ... before each of the next ones; those before the first round
        count as without check-ins.
        """
        need_future(future_rounds)
        history = log.history(ids)[::-1]
        away = np.ones(len(ids))
        for ahead in range(min(future_rounds, self.period)):
            before = history[self.period - 1 - ahead :: self.period]
            away *= 1 - (before.mean(axis=0) if len(before) else 0.0)
        return np.asarray(1 - away)
