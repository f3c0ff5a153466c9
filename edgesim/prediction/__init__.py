"""Forecasts of which devices will check in within the next rounds, from the check-in log alone, and their scores."""

from edgesim.prediction import arima, persistence, poisson
from edgesim.prediction.backtest import Backtest, Predictor, backtest
from edgesim.prediction.check_in_log import CheckInLog
from edgesim.prediction.scores import Confusion

PREDICTORS: dict[str, Predictor] = {
    "poisson": poisson.chances,
    "persistence": persistence.chances,
    "arima": arima.chances,
}

__all__ = ["PREDICTORS", "Backtest", "CheckInLog", "Confusion", "Predictor", "backtest"]
