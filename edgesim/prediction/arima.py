"""One ARIMA model per device, as REFL asks of its devices (Abdelmoniem et al., EuroSys 2023).

The order is (1, 0, 1) with a constant: neither REFL nor the papers that compare against it state one.
"""

import warnings

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.prediction.check_in_log import CheckInLog, need_future
from edgesim.prediction.predictor import Predictor

_ORDER = (1, 0, 1)


class Arima(Predictor):
    """One ARIMA model per device."""

    @override
    def chances(self, log: CheckInLog, ids: Integers, future_rounds: int) -> Floats:
        """Probability that each device checks in in at least one of the next ``future_rounds`` rounds, [n].

        1 - prod_k (1 - p_k) over the forecasts p_k, clipped to [0, 1]. A device that checked in in all rounds of the
        window, or in none, is forecast to continue so. Raises `EdgesimError` for ``future_rounds`` below 1.
        """
        need_future(future_rounds)
        # Imported here: the import takes seconds, and the other predictors do not need it.
        from statsmodels.tsa.arima.model import ARIMA

        history = log.history(ids).astype(np.float64)
        forecast: Floats = history[-1].copy()
        for column in np.flatnonzero(np.ptp(history, axis=0) > 0).tolist():
            with warnings.catch_warnings():
                # Short binary series often stop short of the optimum; their forecast counts all the same.
                warnings.simplefilter("ignore")
                fit = ARIMA(history[:, column], order=_ORDER).fit()
                present = np.clip(fit.forecast(future_rounds), 0.0, 1.0)
            forecast[column] = 1.0 - np.prod(1.0 - present)
        return forecast
