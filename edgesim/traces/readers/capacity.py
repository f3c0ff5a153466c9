"""Capacity tables: CSV or Parquet with the columns t_s, bps and, for several tables in one file, trace."""

from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.radio.capacity_file import read_capacity_rows
from edgesim.traces.intervals import check_length
from edgesim.traces.readers.results import Capacity


def read_capacity_tables(path: Path, length_s: float | None = None) -> Capacity:
    """Read the capacity tables of a file; the last rows end at ``length_s``, or at an unknown instant if it is None.

    Raises `EdgesimError` that names the file and the line or row, or a length that is too short.
    """
    check_length(length_s)
    tables = read_capacity_rows(path)
    if length_s is None:
        return Capacity(tables)
    last_s = max(float(t_s[-1]) for t_s, _ in tables.values())
    if length_s <= last_s:
        raise EdgesimError(f"{path}: the last row begins at {last_s:g} s; give a length_s above it")
    return Capacity(tables, dict.fromkeys(tables, length_s))
