"""How evenly the work of a run was spread over its devices."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def participations(updates: pd.DataFrame, devices: pd.DataFrame) -> Integers:
    """Updates of each device of the run that the server used, [N]; zeros included."""
    counts: Integers = np.bincount(updates["device"], minlength=int(devices["device"].max()) + 1)
    return counts


def lorenz(counts: Integers | Floats) -> Floats:
    """Share of everything that the k devices with the least have together, for k = 0 to N, [N + 1].

    The diagonal k / N where all have the same; zeros where nobody has anything (Lorenz, 1905).
    """
    running = np.append(0.0, np.cumsum(np.sort(counts)))
    return np.asarray(running / (running[-1] or 1.0))


def gini(counts: Integers | Floats) -> float:
    """Gini coefficient: 0 where all have the same, 1 - 1 / N where one device has everything; 0 for nothing at all.

    sum_i sum_j |x_i - x_j| / (2 N sum_i x_i) = 1 - (2 sum_k L_k - 1) / N over the Lorenz curve L_1 to L_N.
    """
    if not counts.sum():
        return 0.0
    return float(1.0 - (2.0 * lorenz(counts).sum() - 1.0) / len(counts))
