"""``ways.parquet`` of a run folder: where devices were; only of runs whose devices move."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.on_disk import in_place_of
from edgesim.base.paths import system_errors
from edgesim.folder.rows_file import read_rows

WAYS = "ways.parquet"
_SCHEMA = pa.schema([("device", pa.int32()), ("t_s", pa.float64()), ("x_m", pa.float64()), ("y_m", pa.float64())])


def write_ways(folder: Path, device: Integers, t_s: Floats, x_m: Floats, y_m: Floats) -> None:
    """Write the corners of the devices' ways, [n], by device and then time.

    The file is a recording that ``mobility.model = "recorded"`` takes. Raises `EdgesimError` where that cannot be
    written.
    """
    with system_errors(f"{folder}: cannot be written"), in_place_of(folder / WAYS) as part:
        pq.write_table(pa.table([device, t_s, x_m, y_m], schema=_SCHEMA), part)


def remove_ways(folder: Path) -> None:
    """Remove ``ways.parquet`` of a run that is run again."""
    (folder / WAYS).unlink(missing_ok=True)


def read_ways(folder: Path) -> pd.DataFrame | None:
    """Read the ways of a run's devices, columns ``device``, ``t_s``, ``x_m``, ``y_m``; None for a run without the file.

    Raises `EdgesimError` for a file that is damaged.
    """
    path = folder / WAYS
    if (frame := read_rows(path, _SCHEMA)) is None:
        return None
    right = frame["device"].ge(0) & frame["t_s"].between(0, 1e300)
    right &= frame["x_m"].between(-1e300, 1e300) & frame["y_m"].between(-1e300, 1e300)
    if not right.all():
        row = int(right.idxmin()) + 1
        raise EdgesimError(f"{path}: row {row}: expected a device from 0 on, an instant from 0 s on and a place")
    return frame.sort_values(["device", "t_s"], kind="stable", ignore_index=True)
