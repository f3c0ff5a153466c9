"""Conversions between decibels and linear values: the only place that has them."""

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Floats


def ratio_from_db(value_db: ArrayLike) -> Floats:
    """Power ratio 10^(dB / 10), elementwise."""
    return np.power(10.0, np.asarray(value_db, dtype=np.float64) / 10.0)


def watts_from_dbm(value_dbm: ArrayLike) -> Floats:
    """Watts of a power in dBm (or W/Hz of a density in dBm/Hz), elementwise."""
    return ratio_from_db(np.asarray(value_dbm, dtype=np.float64) - 30.0)


def db_from_ratio(ratio: ArrayLike) -> Floats:
    """Decibels of a power ratio above 0, elementwise."""
    return np.asarray(10.0 * np.log10(np.asarray(ratio, dtype=np.float64)))
