"""Recorded positions: CSV or Parquet with the columns device, t_s, x_m and y_m, in any order of the rows."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from edgesim.base.arrays import Floats, Integers
from edgesim.base.device_keys import Texts, texts
from edgesim.base.errors import EdgesimError
from edgesim.base.table_facts import PREFIX, read_facts
from edgesim.base.table_file import devices_of, numbers_of, read_columns, refuse_rows, write_parquet

DEVICE = "device"
COLUMNS = (DEVICE, "t_s", "x_m", "y_m")
FARTHEST_M = 1e7
"""Farthest that a position may be from (0, 0) along an axis."""


@dataclass(frozen=True, eq=False)
class PositionRows:
    """Positions of the devices 0, 1, ...: rows ordered by device and then time."""

    device: Integers
    """Device of each row, [m]; every device has one."""
    t_s: Floats
    """Instant of each row, [m], 0 or later; those of a device are different."""
    x_m: Floats
    y_m: Floats
    keys: Texts | None = None
    """Key of each device in the recording, [devices], all different; None if it has no keys."""

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
        ("x_m", ~(np.abs(x_m) <= FARTHEST_M), f"a number of metres from {-FARTHEST_M:g} to {FARTHEST_M:g}"),
        ("y_m", ~(np.abs(y_m) <= FARTHEST_M), f"a number of metres from {-FARTHEST_M:g} to {FARTHEST_M:g}"),
    ]
    for column, broken, expected in rules:
        refuse_rows(path, frame, column, broken, expected)
    order = np.lexsort((t_s, device))
    twice = np.append(False, (np.diff(device[order]) == 0) & (np.diff(t_s[order]) == 0))
    refuse_rows(path, frame, "t_s", twice, "another time than in the device's other rows", order)
    return PositionRows(device[order], t_s[order], x_m[order], y_m[order], _keys(path, int(device.max()) + 1))


def _keys(path: Path, count: int) -> Texts | None:
    """Keys of the devices that the file's notes have; raises `EdgesimError` where they are not those of all."""
    keys = read_facts(path).keys
    if keys is not None and (len(keys) != count or len(set(keys)) != count):
        raise EdgesimError(f"{path}: metadata {PREFIX}keys: expected {count} different keys, one for each device")
    return None if keys is None else texts(keys)


def write_positions(path: Path, rows: PositionRows) -> None:
    """Write a Parquet file from which `read_positions` reads the same; raises `EdgesimError` if it cannot write."""
    columns = {DEVICE: rows.device.astype(np.int32), "t_s": rows.t_s, "x_m": rows.x_m, "y_m": rows.y_m}
    write_parquet(path, pa.table(columns), {} if rows.keys is None else {"keys": json.dumps(rows.keys.tolist())})
