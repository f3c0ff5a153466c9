"""Tables whose rows are checked column by column, those with one row per device among them."""

from pathlib import Path

import numpy as np
import pandas as pd

from edgesim.arrays import Booleans, Floats, Integers
from edgesim.errors import EdgesimError
from edgesim.files.table_facts import MOST_DEVICES
from edgesim.files.table_file import numbers_of, row_word


def ids_of(frame: pd.DataFrame, path: Path, column: str) -> Integers:
    """Ids of devices, [n], each once; raises `EdgesimError` that names the file, the row and what was expected."""
    values = numbers_of(frame[column])
    bad = ~((values >= 0) & (values < MOST_DEVICES) & (values == np.floor(values)))
    refuse_rows(bad, frame, path, column, f"a whole number from 0 to {MOST_DEVICES - 1}")
    refuse_rows(pd.Series(values).duplicated().to_numpy(), frame, path, column, "each device once")
    return values.astype(np.int64)


def above_zero(frame: pd.DataFrame, path: Path, column: str, most: float = np.inf) -> Floats:
    """Finite numbers above 0 and up to ``most``, [n]; raises `EdgesimError` as `ids_of` does."""
    values = numbers_of(frame[column])
    limit = "" if np.isinf(most) else f", up to {most:g}"
    good = np.isfinite(values) & (values > 0) & (values <= most)
    refuse_rows(~good, frame, path, column, f"a finite number above 0{limit}")
    return values


def refuse_rows(bad: Booleans, frame: pd.DataFrame, path: Path, column: str, expected: str) -> None:
    """Raises `EdgesimError` that names the first row that is bad, [n], and what was expected there."""
    if bad.any():
        row = int(np.argmax(bad))
        place = f"{row_word(path)} {frame.index[row]}"
        raise EdgesimError(f"{path}: {place}: {column}: expected {expected} (got {frame[column].iloc[row]!s})")
