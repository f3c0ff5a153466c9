"""Predictors of availability: how likely devices check in soon, by the check-in log alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.config import Section
from edgesim.prediction.check_in_log import CheckInLog

Forecast = Callable[[CheckInLog, Integers, int], Floats]
"""Probability that each of some devices [n] checks in in at least one of so many rounds that follow a log."""


class Predictor(Section, ABC):
    """A predictor of check-ins; its fields are its options."""

    @abstractmethod
    def chances(self, log: CheckInLog, ids: Integers, future_rounds: int) -> Floats:
        """Probability that each device of ``ids`` checks in in at least one of the next rounds, [n].

        Raises `EdgesimError` for ``future_rounds`` below 1.
        """


def checked(name: str, forecast: Forecast) -> Forecast:
    """The forecast of a plug-in's predictor, which raises `EdgesimError` for answers that are no probabilities."""

    def chances(log: CheckInLog, ids: Integers, future_rounds: int) -> Floats:
        answer = forecast(log, ids, future_rounds)
        answered = f"selection.predictor {name!r}: chances answered"
        is_array = isinstance(answer, np.ndarray)
        if not is_array or answer.dtype.kind not in "fiu" or answer.shape != ids.shape:
            got = f"an array {answer.dtype}{list(answer.shape)}" if is_array else type(answer).__name__
            raise EdgesimError(f"{answered} {got}, expected {len(ids)} numbers", "selection.predictor")
        if not ((answer >= 0) & (answer <= 1)).all():
            wrong = int(np.argmin((answer >= 0) & (answer <= 1)))
            raise EdgesimError(
                f"{answered} {answer[wrong]:g} for device {ids[wrong]}, expected 0 to 1", "selection.predictor"
            )
        return answer.astype(np.float64)

    return chances
