"""Recorded positions: CSV or Parquet with the columns device, t_s, x_m and y_m, in any order of the rows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.base.table_file import devices_of, numbers_of, read_columns, refuse_rows

DEVICE = "device"
COLUMNS = (DEVICE, "t_s", "x_m", "y_m")
_FARTHEST_M = 1e7


@dataclass(frozen=True, eq=False)
class PositionRows:
    """Positions of the devices 0, 1, ...: rows ordered by device and then time."""

    device: Integers
    """Device of each row, [m]; every device has one."""
    t_s: Floats
    """Instant of each row, [m], 0 or later; those of a device are different."""
    x_m: Floats
    y_m: Floats

    @property
    def device_count(self) -> int:
        """Devices of the recording."""
        return int(self.device[-1]) + 1


def read_positions(path: Path) -> PositionRows:
    """Read and check recorded positions; other columns are ignored.

    Raises `EdgesimError` that names the file, the line (CSV, the header is line 1) or row (Parquet, from 1), the column
    and what was expected, or the first device without rows.
    """
    frame = read_columns(path, COLUMNS)
    device = devices_of(path, frame, DEVICE)
    t_s, x_m, y_m = (numbers_of(frame[name]) for name in COLUMNS[1:])
    rules = [
        ("t_s", ~(np.isfinite(t_s) & (t_s >= 0)), "a finite number of seconds, 0 or more"),
        ("x_m", ~(np.abs(x_m) <= _FARTHEST_M), f"a number of metres from {-_FARTHEST_M:g} to {_FARTHEST_M:g}"),
        ("y_m", ~(np.abs(y_m) <= _FARTHEST_M), f"a number of metres from {-_FARTHEST_M:g} to {_FARTHEST_M:g}"),
    ]
    for column, broken, expected in rules:
        refuse_rows(path, frame, column, broken, expected)
    order = np.lexsort((t_s, device))
    twice = np.append(False, (np.diff(device[order]) == 0) & (np.diff(t_s[order]) == 0))
    refuse_rows(path, frame, "t_s", twice, "another time than in the device's other rows", order)
    return PositionRows(device[order], t_s[order], x_m[order], y_m[order])
