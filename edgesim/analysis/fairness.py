"""Fairness: the spread of a run's work over its devices."""

import numpy as np
import pandas as pd

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError


def participations(updates: pd.DataFrame, devices: pd.DataFrame) -> Integers:
    """Number of updates of each device that the server used, [N]; zeros included.

    Raises `EdgesimError` for an update of another device.
    """
    known = int(devices["device"].max()) + 1
    counts: Integers = np.bincount(updates["device"].clip(upper=known), minlength=known + 1)
    if counts[known]:
        raise EdgesimError(f"updates: column 'device': {updates['device'].max()} is not in the table devices")
    return counts[:known]


def concentration(counts: Integers) -> Floats:
    """Share of the sum of ``counts`` [N] that its k largest hold together, for k = 1 to N, [N]; 0 if the sum is 0."""
    running = np.cumsum(np.sort(counts)[::-1])
    return np.asarray(running / (running[-1] or 1))


def effective_devices(counts: Integers) -> float:
    """(sum x)^2 / sum x^2 of ``counts`` x [N]: n if n devices have equal counts and the others 0; 0 if all are 0.

    N times Jain's index of fairness (Jain, Chiu and Hawe, DEC-TR-301, 1984). Devices with a count of 0, such as those
    that were never available, do not change it.
    """
    squares = float(np.square(counts.astype(np.float64)).sum())
    return float(counts.sum()) ** 2 / squares if squares else 0.0
