"""What recorded devices can do: seconds per training sample and, where the recording has them, link rate and clock."""

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from edgesim.errors import EdgesimError
from edgesim.table_file import numbers_of, read_columns, row_word, write_parquet

Floats = NDArray[np.float64]

COLUMNS = ("device", "s_per_sample")
LINK = "link_bps"
CLOCK = "clock_hz"


@dataclass(frozen=True)
class Profile:
    """One row per recorded device, [n]; row k is the same phone as device k of a trace recorded with it."""

    s_per_sample: Floats
    """Time to train on one sample."""
    link_bps: Floats | None
    names: list[str] | None = None
    clock_hz: Floats | None = None
    """Clock of the processor while it trains."""

    def first(self, count: int) -> "Profile":
        """The first ``count`` devices."""

        def cut(values: Floats | None) -> Floats | None:
            return None if values is None else values[:count]

        names = None if self.names is None else self.names[:count]
        return Profile(self.s_per_sample[:count], cut(self.link_bps), names, cut(self.clock_hz))


def read_profile(path: Path) -> Profile:
    """Read a CSV or Parquet file with the columns device, s_per_sample and perhaps link_bps and clock_hz.

    The devices are 0, 1, ... in any order, each once. Raises `EdgesimError` that names the file, the line or row,
    the column and what was expected.
    """
    frame = read_columns(path, COLUMNS, optional=(LINK, CLOCK))
    if frame.empty:
        raise EdgesimError(f"{path}: holds no rows; expected {', '.join(COLUMNS)}")

    def refuse(row: int, column: str, expected: str) -> NoReturn:
        place = f"{row_word(path)} {frame.index[row]}"
        raise EdgesimError(f"{path}: {place}: {column}: expected {expected} (got {frame[column].iloc[row]!s})")

    columns = {str(name): numbers_of(frame[name]) for name in frame.columns}
    device = columns.pop("device")
    no_id = ~((device >= 0) & (device < len(device)) & (device == np.floor(device)))
    if no_id.any():
        refuse(int(np.argmax(no_id)), "device", f"a whole number from 0 to {len(device) - 1}, one for each row")
    seen_before = np.ones(len(device), dtype=bool)
    seen_before[np.unique(device, return_index=True)[1]] = False
    if seen_before.any():
        refuse(int(np.argmax(seen_before)), "device", "each device once")
    for name, values in columns.items():
        bad = ~(np.isfinite(values) & (values > 0))
        if bad.any():
            refuse(int(np.argmax(bad)), name, "a finite number above 0")
    order = np.argsort(device)
    link_bps, clock_hz = (columns[name][order] if name in columns else None for name in (LINK, CLOCK))
    return Profile(columns["s_per_sample"][order], link_bps, clock_hz=clock_hz)


def write_profile(path: Path, profile: Profile) -> None:
    """Write a Parquet file that `read_profile` reads; names go into a column of their own, for the reader's eye."""
    columns: dict[str, object] = {
        "device": np.arange(len(profile.s_per_sample), dtype=np.int32),
        "s_per_sample": profile.s_per_sample,
    }
    for name, values in ((LINK, profile.link_bps), (CLOCK, profile.clock_hz)):
        if values is not None:
            columns[name] = values
    if profile.names is not None:
        columns["name"] = profile.names
    write_parquet(path, pa.table(columns), {})
