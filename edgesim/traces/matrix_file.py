"""Matrices of devices and slots in files: programmed participation, or the probability of each device in each slot.

CSV or Parquet with the columns ``device``, 1, 2, ..., one row per device, in any order; further columns are refused,
since a slot that is left out or out of place would move all later ones.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from edgesim.base.arrays import Booleans, Floats
from edgesim.base.content import find
from edgesim.base.errors import EdgesimError
from edgesim.base.table_file import column_names, numbers_of, read_columns, row_word
from edgesim.traces.device_rows import ids_of

DEVICE = "device"


def is_matrix(path: Path) -> bool:
    """Whether the first columns of a CSV or Parquet file are those of a matrix; raises `EdgesimError` if unreadable."""
    return path.suffix in (".csv", ".parquet") and column_names(path)[:2] == [DEVICE, "1"]


def find_matrix(name: str) -> Path:
    """Path of the matrix that ``availability.file`` gives, as a path or as a name under ``traces/``.

    Raises `EdgesimError` that lists the matrices under ``traces/`` if there is no such file.
    """
    return find("traces", name, ".parquet", "availability.file", "1")


def read_matrix(path: Path) -> Booleans:
    """Whether each device is available in each slot, [devices, slots]; raises `EdgesimError` as `read_cells` does."""
    return np.asarray(read_cells(path, lambda cells: (cells == 0) | (cells == 1), "0 or 1") == 1)


def read_cells(path: Path, good: Callable[[Floats], Booleans], expected: str) -> Floats:
    """The number of each device and slot, [devices, slots]; all must be ``good``, in words as ``expected`` says.

    Raises `EdgesimError` that names the file, the line (CSV, the header is line 1) or row (Parquet, from 1), the column
    and what was expected there.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise EdgesimError(f"{path}: expected a file that ends in .csv or .parquet")
    names = column_names(path)
    slots = len(names) - 1
    wanted = [DEVICE, *map(str, range(1, max(slots, 1) + 1))]
    for place, (name, other) in enumerate(zip([*names, "nothing"], wanted, strict=False), start=1):
        if name != other:
            raise EdgesimError(f"{path}: column {place}: expected {other!r}, of {DEVICE!r}, 1, 2, ... (got {name!r})")
    frame = read_columns(path, wanted)
    ids = ids_of(frame, path, DEVICE)
    missing = np.flatnonzero(~np.isin(np.arange(ids.max() + 1), ids))
    if len(missing):
        raise EdgesimError(f"{path}: has no row of device {missing[0]}; expected one of each from 0 to {ids.max()}")
    cells = np.column_stack([numbers_of(frame[name]) for name in wanted[1:]])
    bad = ~good(cells)
    if bad.any():
        row, slot = np.argwhere(bad)[0].tolist()
        where = f"{path}: {row_word(path)} {frame.index[row]}: column {wanted[slot + 1]!r}"
        raise EdgesimError(f"{where}: expected {expected} (got {frame.iloc[row, slot + 1]!s})")
    of_device = np.empty_like(cells)
    of_device[ids] = cells
    return of_device
