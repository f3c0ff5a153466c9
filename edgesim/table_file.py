"""Tables that users bring, as CSV or Parquet: the columns wanted, row by row, with their places for messages."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from edgesim.errors import EdgesimError


def read_columns(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The columns of a file, indexed by line (CSV, the header is line 1) or row (Parquet, from 1).

    Values of a CSV are text, those of Parquet numbers; other columns and blank lines are left out. Raises
    `EdgesimError` that names the file when it is not readable or lacks a column.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise EdgesimError(f"{path}: expected a file that ends in .csv or .parquet")
    try:
        return _read_csv(path, columns) if path.suffix == ".csv" else _read_parquet(path, columns)
    except (OSError, ValueError, pa.ArrowException, pd.errors.ParserWarning) as error:
        # Parsers report over several lines; the first one says what is wrong.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EdgesimError(f"{path}: not a readable {path.suffix[1:]} file: {reason}") from None


def row_word(path: Path) -> str:
    """What the index of `read_columns` counts: ``line`` or ``row``."""
    return "line" if path.suffix == ".csv" else "row"


def _read_csv(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    with warnings.catch_warnings():
        # Pandas only warns when it cuts off the fields of a row that is too long.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame: pd.DataFrame = pd.read_csv(
            path, dtype=str, index_col=False, skip_blank_lines=False, skipinitialspace=True
        )
    _need_columns(path, columns, [str(name) for name in frame.columns])
    # Blank lines are dropped only here, so that the numbers of rows and lines go together.
    frame.index = pd.RangeIndex(2, len(frame) + 2)
    rows: pd.DataFrame = frame[list(columns)].dropna(how="all")
    return rows


def _read_parquet(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        _need_columns(path, columns, schema.names)
        for name in columns:
            kind = schema.field(name).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise EdgesimError(f"{path}: column {name!r}: expected numbers, found {kind}")
        frame: pd.DataFrame = file.read(columns=list(columns)).to_pandas(ignore_metadata=True)
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    return frame


def _need_columns(path: Path, columns: Sequence[str], found: list[str]) -> None:
    missing = [name for name in columns if name not in found]
    if missing:
        raise EdgesimError(
            f"{path}: column {missing[0]!r} is missing; expected {', '.join(columns)}; found {', '.join(found)}"
        )
