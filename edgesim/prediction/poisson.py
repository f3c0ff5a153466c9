"""FedDance's predictor: check-ins as a Poisson process (FedDance, SoCC 2025, section 4.1)."""

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.prediction.check_in_log import CheckInLog, need_future
from edgesim.prediction.predictor import Predictor


class Poisson(Predictor):
    """Check-ins as a Poisson process, as FedDance has it."""

    @override
    def chances(self, log: CheckInLog, ids: Integers, future_rounds: int) -> Floats:
        """Probability that each device checks in in at least one of the next ``future_rounds`` rounds, [n].

        Raises `EdgesimError` for ``future_rounds`` below 1.
        """
        need_future(future_rounds)
        return once_or_more(log.rates(ids), future_rounds)


def once_or_more(rate_per_round: ArrayLike, future_rounds: int) -> Floats:
    """V = Pr(L > 0) = 1 - exp(-lambda K), of the rates' shape: FedDance, eq. 5."""
    return np.asarray(-np.expm1(-np.asarray(rate_per_round) * future_rounds))
