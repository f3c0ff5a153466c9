"""Columns of tables with one row per device, checked."""

from pathlib import Path

import numpy as np
import pandas as pd

from edgesim.base.arrays import Floats, Integers
from edgesim.base.quantities import MOST_DEVICES
from edgesim.base.table_file import numbers_of, refuse_rows, whole_numbers


def ids_of(frame: pd.DataFrame, path: Path, column: str) -> Integers:
    """Ids of devices, [n], each once; raises `EdgesimError` that names the file, the row and what was expected."""
    ids = whole_numbers(path, frame, column, MOST_DEVICES - 1)
    refuse_rows(path, frame, column, pd.Series(ids).duplicated().to_numpy(), "each device once")
    return ids


def above_zero(frame: pd.DataFrame, path: Path, column: str, most: float = np.inf) -> Floats:
    """Finite numbers above 0 and up to ``most``, [n]; raises `EdgesimError` as `ids_of` does."""
    values = numbers_of(frame[column])
    limit = "" if np.isinf(most) else f", up to {most:g}"
    good = np.isfinite(values) & (values > 0) & (values <= most)
    refuse_rows(path, frame, column, ~good, f"a finite number above 0{limit}")
    return values
