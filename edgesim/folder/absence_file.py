"""``absences.parquet`` of a run folder: when devices were absent; only of runs whose devices come and go."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.on_disk import in_place_of
from edgesim.base.paths import system_errors
from edgesim.folder.rows_file import read_rows

_FILE = "absences.parquet"
_SCHEMA = pa.schema([("device", pa.int32()), ("t_start_s", pa.float64()), ("t_end_s", pa.float64())])


def write_absences(folder: Path, device: Integers, t_start_s: Floats, t_end_s: Floats) -> None:
    """Write a row per span without a device, [n]; raises `EdgesimError` where that cannot be written."""
    with system_errors(f"{folder}: cannot be written"), in_place_of(folder / _FILE) as part:
        pq.write_table(pa.table([device, t_start_s, t_end_s], schema=_SCHEMA), part)


def remove_absences(folder: Path) -> None:
    """Remove ``absences.parquet`` of a run that is run again."""
    (folder / _FILE).unlink(missing_ok=True)


def read_absences(folder: Path) -> pd.DataFrame | None:
    """Read the absences of a run, columns ``device``, ``t_start_s``, ``t_end_s``; None for a run without the file.

    Raises `EdgesimError` for a file that is damaged.
    """
    path = folder / _FILE
    if (frame := read_rows(path, _SCHEMA)) is None:
        return None
    right = frame["device"].ge(0) & frame["t_start_s"].ge(0) & frame["t_end_s"].between(frame["t_start_s"], 1e300)
    if not right.all():
        row = int(right.idxmin()) + 1
        raise EdgesimError(f"{path}: row {row}: expected a device from 0 on, and a span from 0 s or later to its end")
    return frame
