"""Parquet files of a run folder beside its tables, which only some runs have."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from edgesim.base.arrays import Numbers
from edgesim.base.errors import EdgesimError
from edgesim.base.on_disk import in_place_of
from edgesim.base.paths import system_errors
from edgesim.folder.digests import check_file

_I32, _F64 = pa.int32(), pa.float64()
_FAR = 1e300


@dataclass(frozen=True)
class RowsFile:
    """A file of rows by device and then time, with a value in every column of every row."""

    name: str
    schema: pa.Schema
    expected: str
    """What each row holds, for messages."""
    is_right: Callable[[pd.DataFrame], "pd.Series[bool]"]
    """Function that tells which rows hold that."""

    def write(self, folder: Path, columns: Iterable[Numbers] | None) -> None:
        """Write the columns, [n] each; None, where these are not known, leaves no file.

        Raises `EdgesimError` where the file cannot be written.
        """
        if columns is not None:
            with system_errors(f"{folder}: cannot be written"), in_place_of(folder / self.name) as part:
                arrays = [pa.array(of, at.type, from_pandas=True) for of, at in zip(columns, self.schema, strict=True)]
                pq.write_table(pa.table(arrays, schema=self.schema), part)

    def read(self, folder: Path) -> pd.DataFrame | None:
        """Read the rows of a run; None for a run without the file. Raises `EdgesimError` for a file that is damaged."""
        path = folder / self.name
        if not path.is_file():
            return None
        check_file(path)
        try:
            rows = pq.read_table(path).select(self.schema.names).cast(self.schema)
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise EdgesimError(f"{path}: cannot be read: {str(error).strip().splitlines()[0]}") from None
        if any(rows[name].null_count for name in self.schema.names):
            raise EdgesimError(f"{path}: expected a value in every row")
        frame: pd.DataFrame = rows.to_pandas()
        right = frame["device"].ge(0) & self.is_right(frame)
        if not right.all():
            raise EdgesimError(f"{path}: row {int(right.idxmin()) + 1}: expected {self.expected}")
        return frame.sort_values(self.schema.names[:2], kind="stable", ignore_index=True)


ABSENCES = RowsFile(
    "absences.parquet",
    pa.schema([("device", _I32), ("t_start_s", _F64), ("t_end_s", _F64)]),
    "a device from 0 on, and a span from 0 s or later to its end",
    lambda rows: rows["t_start_s"].ge(0) & rows["t_end_s"].between(rows["t_start_s"], _FAR),
)
"""When devices were absent, a row per span; only of runs whose devices come and go."""

WAYS = RowsFile(
    "ways.parquet",
    pa.schema([("device", _I32), ("t_s", _F64), ("x_m", _F64), ("y_m", _F64)]),
    "a device from 0 on, an instant from 0 s on and a place",
    lambda rows: rows["t_s"].between(0, _FAR) & rows[["x_m", "y_m"]].abs().le(_FAR).all(axis=1),
)
"""Where devices were, the corners of their ways; only of runs whose devices move.

The file is a recording that ``mobility.model = "recorded"`` takes.
"""
