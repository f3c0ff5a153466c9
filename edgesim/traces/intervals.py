"""Interval files: CSV or Parquet with the columns device, start_s, end_s, one row per available period."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from edgesim.errors import EdgesimError
from edgesim.table_file import read_columns, row_word

COLUMNS = ("device", "start_s", "end_s")


@dataclass(frozen=True)
class Intervals:
    """Half-open periods [start_s, end_s), one row each, by device and then by time; none touch or overlap."""

    device: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]


def read_intervals(path: Path, device_count: int) -> Intervals:
    """Read and check an interval file; touching periods of a device are merged.

    Rows of different devices may come in any order, those of one device by time. Raises `EdgesimError` that
    names the file, the line (CSV, the header is line 1) or row (Parquet, from 1), the field and what was
    expected.
    """
    frame = read_columns(path, COLUMNS)
    if frame.empty:
        raise EdgesimError(f"{path}: holds no rows, so no device would ever be available")
    return _merged(*_checked(frame, path, device_count))


def _checked(
    frame: pd.DataFrame, path: Path, device_count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The columns as arrays, ordered by device; refuses the first row that breaks a rule."""

    def refuse(bad: NDArray[np.bool_], numbers: NDArray[np.int64], field: str, expected: str) -> None:
        if bad.any():
            number = numbers[np.argmax(bad)]
            place = f"{path}: {row_word(path)} {number}: {field}"
            raise EdgesimError(f"{place}: expected {expected} (got {frame.at[number, field]!s})")

    numbers = frame.index.to_numpy()
    columns = [_numbers(frame[name]) for name in COLUMNS]
    for name, column in zip(COLUMNS, columns, strict=True):
        refuse(~np.isfinite(column), numbers, name, "a finite number")
    device, start_s, end_s = columns
    unknown = (device != np.floor(device)) | (device < 0) | (device >= device_count)
    refuse(
        unknown,
        numbers,
        "device",
        f"a whole number from 0 to {device_count - 1} (devices.count is {device_count})",
    )
    refuse(start_s < 0, numbers, "start_s", "seconds since the start of the run, 0 or more")
    refuse(end_s <= start_s, numbers, "end_s", "an instant after the row's own start_s")

    order = np.argsort(device, kind="stable")
    device, start_s, end_s, numbers = device[order], start_s[order], end_s[order], numbers[order]
    same = np.append(False, device[1:] == device[:-1])
    refuse(same & (start_s < np.roll(start_s, 1)), numbers, "start_s", "the rows of a device sorted by time")
    refuse(same & (start_s < np.roll(end_s, 1)), numbers, "start_s", "no overlap with the device's row before")
    return device.astype(np.int64), start_s, end_s


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    """A column of numbers or of text as numbers; nan where the text is none."""
    try:
        # Text is parsed here, not by the CSV reader, which is not exact to the last bit in every version.
        return np.asarray(column.to_numpy(dtype=np.float64))
    except ValueError:
        return np.asarray(pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64))


def _merged(device: NDArray[np.int64], start_s: NDArray[np.float64], end_s: NDArray[np.float64]) -> Intervals:
    """Join periods of a device of which one starts where the other ends."""
    begins = np.append(True, (device[1:] != device[:-1]) | (start_s[1:] > end_s[:-1]))
    ends = np.append(begins[1:], True)
    return Intervals(device[begins], start_s[begins], end_s[ends])
