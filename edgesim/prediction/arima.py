"""One ARIMA model per device, as REFL asks of its devices (Abdelmoniem et al., EuroSys 2023).

The order is (1, 0, 1) with a constant: neither REFL nor those who compare against it give one.
"""

import warnings

import numpy as np

from edgesim.arrays import Floats, Integers
from edgesim.prediction.check_in_log import CheckInLog, need_future

_ORDER = (1, 0, 1)


def chances(log: CheckInLog, ids: Integers, future_rounds: int) -> Floats:
    """Chance that each device is there in at least one of the next rounds, [n].

    1 - prod_k (1 - p_k) over the forecasts p_k, clipped to [0, 1]. A device that was always, or never, there within
    the window is forecast to go on so. Raises `EdgesimError` for no rounds.
    """
    need_future(future_rounds)
    # It takes seconds to import, which the other predictors need not wait for.
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
