"""Tests of the predictor."""

import numpy as np

from edgesim.prediction import CheckInLog
from edgesim.templates.predictor import SameHour


def test_a_device_with_a_habit_is_forecast_to_keep_it() -> None:
    """Device 0 comes in every fourth round, device 1 never; the next round is the 12th, its turn."""
    log = CheckInLog.empty(2, 12)
    for round in range(12):
        log.append(np.flatnonzero([round % 4 == 0, False]))
    predictor = SameHour(period=4)
    assert predictor.chances(log, np.array([0, 1]), 1).tolist() == [1, 0]
    assert SameHour(period=3).chances(log, np.array([0]), 1).tolist() == [0.25]
    log.append(np.array([0]))
    assert predictor.chances(log, np.array([0]), 3).tolist() == [0]
    assert predictor.chances(log, np.array([0]), 4).tolist() == [1]
