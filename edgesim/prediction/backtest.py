"""Backtest of a predictor on a log of check-ins: its forecast in every round against what happened."""

import time
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from edgesim.base.arrays import Booleans
from edgesim.base.errors import EdgesimError
from edgesim.prediction.check_in_log import CheckInLog, need_future
from edgesim.prediction.predictor import Forecast
from edgesim.prediction.scores import Confusion

THRESHOLD = 0.5
"""A device is forecast to check in if its probability is above this (FedDance, section 6.3.1)."""


@dataclass(frozen=True)
class Backtest:
    """One forecast of all devices for each round judged."""

    rounds: list[int]
    """The rounds r judged, counted from 0: the forecast uses rounds before r and is about r and later rounds."""
    confusions: list[Confusion]
    wall_s: list[float]
    """Wall seconds of each forecast of all devices."""

    @property
    def overall(self) -> Confusion:
        """The confusion of all judged rounds together."""
        return reduce(add, self.confusions)


def backtest(
    present: Booleans, predictor: Forecast, history_rounds: int, future_rounds: int, every: int = 1
) -> Backtest:
    """Judge a predictor on a log, ``present`` [rounds, devices], in every ``every``-th round that has a full history.

    The truth is whether a device checked in in at least one of the K rounds r .. r + K - 1; the predictor sees the K_h
    rounds r - K_h .. r - 1 only (FedDance, eqs. 2 and 4). Raises `EdgesimError` if the windows do not fit into the log,
    or one of the numbers is below 1.
    """
    rounds, devices = present.shape
    need_future(future_rounds)
    if every < 1:
        raise EdgesimError(f"availability predictor: every must be at least 1 (got {every})")
    log = CheckInLog.empty(devices, history_rounds)
    if history_rounds + future_rounds > rounds:
        raise EdgesimError(
            f"availability predictor: a history of {history_rounds} and a future of {future_rounds} rounds do not fit "
            f"into a log of {rounds}; shorten history_rounds or future_rounds, or log more rounds"
        )
    everyone = np.arange(devices, dtype=np.int64)
    judged = range(history_rounds, rounds - future_rounds + 1, every)
    confusions, wall_s = [], []
    for r in range(judged[-1] + 1):
        if r in judged:
            started = time.perf_counter()
            forecast = predictor(log, everyone, future_rounds)
            wall_s.append(time.perf_counter() - started)
            present_soon = np.asarray(np.any(present[r : r + future_rounds], axis=0))
            confusions.append(Confusion.of(np.asarray(forecast > THRESHOLD), present_soon))
        log.append(np.flatnonzero(present[r]))
    return Backtest(list(judged), confusions, wall_s)
