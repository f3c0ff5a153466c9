"""Tables that users bring, as CSV or Parquet: reading chosen columns, with line or row numbers for messages."""

import csv
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.device_keys import Texts
from edgesim.base.errors import EdgesimError
from edgesim.base.memory import check_fits
from edgesim.base.on_disk import new_file
from edgesim.base.table_facts import PREFIX

_VALUE_BYTES = 8


def read_columns(
    path: Path, columns: Sequence[str], optional: Sequence[str] = (), text: Sequence[str] = (), or_empty: bool = False
) -> pd.DataFrame:
    """The columns of a file, indexed by line (CSV, the header is line 1) or row (Parquet, from 1).

    Values of a CSV are text; values of Parquet are numbers, except in the columns named by ``text``. Other columns and
    blank lines are left out, and so are ``optional`` columns that the file lacks. Raises `EdgesimError` that names the
    file if it is not readable, lacks a column, or holds no rows; with ``or_empty`` it may.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise EdgesimError(f"{path}: expected a file that ends in .csv or .parquet")
    try:
        read = _read_csv if path.suffix == ".csv" else _read_parquet
        frame = read(path, columns, optional, text)
    except (OSError, ValueError, pa.ArrowException, pd.errors.ParserWarning) as error:
        raise _unreadable(path, error) from None
    if frame.empty and not or_empty:
        raise EdgesimError(f"{path}: holds no rows; expected {', '.join(columns)}")
    return frame


def column_names(path: Path) -> list[str]:
    """Names of the columns of a CSV or Parquet file; raises `EdgesimError` that names the file if it is unreadable."""
    try:
        if path.suffix == ".parquet":
            return [str(name) for name in pq.read_schema(path).names]
        return [str(name).strip() for name in pd.read_csv(path, dtype=str, nrows=0).columns]
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV of any shape, each with the line on which it begins; raises `EdgesimError` for an open quote."""
    # Bytes that are not UTF-8 are replaced here; the check of the field that holds them refuses them.
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.reader(file, skipinitialspace=True, strict=True)
        line = 1
        try:
            for fields in rows:
                yield line, fields
                line = rows.line_num + 1
        except csv.Error:
            raise EdgesimError(
                f"{path}: line {line}: expected quotes around whole fields only, and each closed"
            ) from None


def numbers_of(column: pd.Series) -> Floats:
    """A column of numbers or of text as numbers; nan where the text is not a number."""
    try:
        # Parsed here and not by the CSV reader, which is not exact to the last bit in every version of pandas.
        return np.asarray(column.to_numpy(dtype=np.float64))
    except ValueError:
        return np.asarray(pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64))


def texts_of(column: pd.Series) -> Texts:
    """A column as text, [n], empty where a value is missing."""
    text = column.astype(object).where(column.notna(), "").astype(str)
    return np.array(text.to_list(), dtype=object)


def write_parquet(path: Path, table: pa.Table, facts: Mapping[str, str]) -> None:
    """Write a table and its notes, completely or not at all; raises `EdgesimError` that names the file."""
    if path.suffix != ".parquet":
        raise EdgesimError(f"{path}: expected a name that ends in .parquet")
    notes = {f"{PREFIX}{key}".encode(): value.encode() for key, value in facts.items()}
    with new_file(path) as part:
        pq.write_table(table.replace_schema_metadata(notes), part, compression="zstd")


def row_word(path: Path) -> str:
    """Unit of the index of `read_columns`, for messages: ``line`` for CSV, ``row`` for Parquet."""
    return "line" if path.suffix == ".csv" else "row"


def refuse_rows(
    path: Path, frame: pd.DataFrame, column: str, broken: Booleans, expected: str, order: Integers | None = None
) -> None:
    """Raise `EdgesimError` for the first row of a table of `read_columns` whose value breaks a rule, if there is one.

    ``broken`` [m] stands in the order of the rows, or in that of their positions ``order`` [m].
    """
    if broken.any():
        row = int((np.arange(len(broken)) if order is None else order)[broken].min())
        value, place = frame[column].iloc[row], f"{row_word(path)} {frame.index[row]}"
        if path.suffix == ".csv" and pd.isna(value):
            _refuse_short_row(path, frame.index[row])
        raise EdgesimError(f"{path}: {place}: {column}: expected {expected} (got {value!s})")


def whole_numbers(path: Path, frame: pd.DataFrame, column: str, most: int, expected: str = "") -> Integers:
    """A column of whole numbers from 0 to ``most``; raises `EdgesimError` for others, which were ``expected``."""
    values = numbers_of(frame[column])
    broken = ~((values >= 0) & (values <= most) & (values == np.floor(values)))
    refuse_rows(path, frame, column, broken, expected or f"a whole number from 0 to {most}")
    return values.astype(np.int64)


def devices_of(path: Path, frame: pd.DataFrame, column: str) -> Integers:
    """Device of each row, [m], of a table in which each device from 0 on has a row; raises `EdgesimError`."""
    device = whole_numbers(path, frame, column, 2**31 - 1, "a whole number, 0 or more")
    present = np.unique(device)
    left_out = np.flatnonzero(present != np.arange(len(present)))
    if len(left_out):
        raise EdgesimError(f"{path}: device {left_out[0]} has no rows; expected all devices from 0 to {present[-1]}")
    return device


def _unreadable(path: Path, error: Exception | Warning) -> EdgesimError:
    # Versions of pandas differ in whether a long row or a byte that is not UTF-8 is refused first.
    if path.suffix == ".csv" and isinstance(
        error, pd.errors.ParserError | pd.errors.ParserWarning | UnicodeDecodeError
    ):
        _refuse_long_rows(path)
    # The parsers' messages have several lines, of which the first says what is wrong.
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return EdgesimError(f"{path}: not a readable {path.suffix[1:]} file: {reason}")


def _refuse_long_rows(path: Path) -> None:
    """Raises `EdgesimError` for the first line of a CSV with more fields than the header, or with an open quote."""
    width = None
    for line, fields in csv_rows(path):
        width = width or len(fields)
        if len(fields) > width:
            raise EdgesimError(f"{path}: line {line}: expected {width} fields (got {len(fields)})")


def _refuse_short_row(path: Path, line: int) -> None:
    """Raises `EdgesimError` if a line of a CSV has fewer fields than the header, whose last columns are then empty."""
    rows = dict(row for row in csv_rows(path) if row[0] in (1, line))
    if len(rows[line]) < len(rows[1]):
        raise EdgesimError(f"{path}: line {line}: expected {len(rows[1])} fields (got {len(rows[line])})")


def _read_csv(path: Path, columns: Sequence[str], optional: Sequence[str], text: Sequence[str]) -> pd.DataFrame:
    with warnings.catch_warnings():
        # Pandas only warns when it cuts off the fields of a row that is too long.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame: pd.DataFrame = pd.read_csv(
            path, dtype=str, index_col=False, skip_blank_lines=False, skipinitialspace=True
        )
    _need_columns(path, columns, [str(name) for name in frame.columns])
    # Pandas gives a column that is there twice a name of its own.
    _refuse_twice(path, [*columns, *optional], [name.strip() for _, row in islice(csv_rows(path), 1) for name in row])
    # Blank lines are dropped after the rows are numbered, so that the index holds line numbers.
    frame.index = pd.RangeIndex(2, len(frame) + 2)
    wanted = [*columns, *(name for name in optional if name in frame.columns)]
    # A line is blank if it is empty in all columns of the file, not only in the wanted ones.
    rows: pd.DataFrame = frame.dropna(how="all")[wanted]
    return rows


def _read_parquet(path: Path, columns: Sequence[str], optional: Sequence[str], text: Sequence[str]) -> pd.DataFrame:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        _need_columns(path, columns, schema.names)
        _refuse_twice(path, [*columns, *optional], schema.names)
        wanted = [*columns, *(name for name in optional if name in schema.names)]
        for name in wanted:
            kind = schema.field(name).type
            expected = "text" if name in text else "numbers"
            if not (_is_number(kind) or (name in text and _is_text(kind))):
                raise EdgesimError(f"{path}: column {name!r}: expected {expected}, found {kind}")
        # A column of equal values is small on the disk, however long it is.
        check_fits(file.metadata.num_rows * _VALUE_BYTES * len(wanted), f"{path}: row {file.metadata.num_rows}")
        frame: pd.DataFrame = file.read(columns=wanted).to_pandas(ignore_metadata=True)
    # Arrow keeps its read buffers for the next file: 700 MB for a week of 100,000 phones.
    pa.default_memory_pool().release_unused()
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    return frame


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_text(kind: pa.DataType) -> bool:
    """Whether a column can be read as text: texts (also dictionary-encoded), numbers, or nulls only."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_null(inner) or _is_number(inner)
    )


def _refuse_twice(path: Path, columns: Sequence[str], names: list[str]) -> None:
    twice = [name for name in columns if names.count(name) > 1]
    if twice:
        raise EdgesimError(f"{path}: column {twice[0]!r} is given {names.count(twice[0])} times; expected it once")


def _need_columns(path: Path, columns: Sequence[str], names: list[str]) -> None:
    missing = [name for name in columns if name not in names]
    if missing:
        raise EdgesimError(
            f"{path}: column {missing[0]!r} is missing; expected {', '.join(columns)}; found {', '.join(names)}"
        )
