"""Forecasts of which devices will check in within the next rounds, from the check-in log alone, and their scores."""

from collections.abc import Mapping
from typing import Any

from edgesim.base.registry import Registry
from edgesim.base.validation import entry_of
from edgesim.prediction.arima import Arima
from edgesim.prediction.backtest import Backtest, backtest
from edgesim.prediction.check_in_log import CheckInLog
from edgesim.prediction.persistence import Persistence
from edgesim.prediction.poisson import Poisson
from edgesim.prediction.predictor import Forecast, Predictor, checked
from edgesim.prediction.scores import Confusion

_OWN: dict[str, type[Predictor]] = {"poisson": Poisson, "persistence": Persistence, "arima": Arima}
PREDICTORS = Registry("selection.predictor", "predictors", Predictor, _OWN)


def make_predictor(name: str, options: Mapping[str, Any] | None = None) -> Forecast:
    """The forecast of a predictor by its name; raises `EdgesimError` for an unknown name or a bad option."""
    predictor = entry_of(PREDICTORS, name, options or {}, "selection.predictor_options")
    return predictor.chances if name in _OWN else checked(name, predictor.chances)


__all__ = ["PREDICTORS", "Backtest", "CheckInLog", "Confusion", "Forecast", "Predictor", "backtest", "make_predictor"]
