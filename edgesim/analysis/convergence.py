"""How fast and how smoothly a run learned by its own measure, and how its time grows with the number of devices."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import linregress, t

from edgesim.analysis.metrics import Reached
from edgesim.arrays import Floats
from edgesim.errors import EdgesimError

OF_PEAK = 0.95


def to_own_peak(tests: pd.DataFrame, share: float = OF_PEAK) -> Reached:
    """The first test at or above a share of the run's best accuracy; ``tests`` as from `metrics.tests`, at least one.

    It rewards a low peak: beside it belong the rounds to a target that all runs have in common (`metrics.to_target`).
    """
    accuracy = tests["accuracy"].to_numpy()
    row = tests.iloc[int(np.argmax(accuracy >= share * accuracy.max()))]
    return Reached(float(row["round"]), float(row["t_s"]), True)


def roughness(losses: Floats) -> float:
    """Mean |l_(t+1) - 2 l_t + l_(t-1)| of test losses in order, [n]; NaN of fewer than three."""
    return float(np.abs(np.diff(losses, 2)).mean()) if len(losses) > 2 else np.nan


class Growth(NamedTuple):
    """Exponent of a power law, with the ends of its 95 % t interval."""

    exponent: float
    low: float
    high: float


def growth(devices: Floats, seconds: Floats) -> Growth:
    """The b of seconds = a devices^b, [n] each: least squares on logarithms.

    Of two numbers of devices alone the interval is NaN. Raises `EdgesimError` for fewer than two, and for values that
    are not above zero.
    """
    devices, seconds = np.asarray(devices, dtype=np.float64), np.asarray(seconds, dtype=np.float64)
    if not (np.all(devices > 0) and np.all(seconds > 0)):
        raise EdgesimError("growth: expected numbers of devices and seconds above 0")
    if len(np.unique(devices)) < 2:
        raise EdgesimError("growth: expected runs of two numbers of devices or more")
    fit = linregress(np.log(devices), np.log(seconds))
    freedom = len(devices) - 2
    reach = float(t.ppf(0.975, freedom)) * float(fit.stderr) if freedom else np.nan
    return Growth(float(fit.slope), float(fit.slope) - reach, float(fit.slope) + reach)
