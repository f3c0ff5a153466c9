"""Interval files: CSV or Parquet with the columns device, start_s, end_s, one row per available period.

A column ``length_s``, the same in all rows of a device, says when the device's recording ends; without it all
recordings end at the last end in the file. The notes of a Parquet file may hold the number of devices (those that are
never available have no rows), the length of each recording, the devices' keys and models, for how long each was not
observed, and whether that time counts as absent or present (`edgesim.base.table_facts`).

A column ``device_id`` may stand in place of ``device``: ids from 0, or from 1 if no row has 0; they are the devices'
keys.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.device_keys import texts
from edgesim.base.errors import EdgesimError
from edgesim.base.quantities import MOST_DEVICES
from edgesim.base.table_facts import LONGEST_S, PREFIX, Facts, read_facts
from edgesim.base.table_file import column_names, numbers_of, read_columns, refuse_rows, write_parquet
from edgesim.traces.intervals import Intervals, check_length, joined

DEVICE, DEVICE_ID = "device", "device_id"
TIMES = ("start_s", "end_s")
LENGTH = "length_s"
NAMES = ("keys", "models")


def read_intervals(path: Path, length_s: float | None = None) -> Intervals:
    """Read and check an interval file; touching periods of a device are merged.

    Rows of different devices may come in any order, those of one device by time. ``length_s`` is the length of the
    recordings if the file has no such column. A device without rows has the longest recording of those with rows,
    unless the file says otherwise. Raises `EdgesimError` that names the file, the line (CSV, the header is line 1), row
    (Parquet, from 1) or metadata, the field and what was expected.
    """
    check_length(length_s)
    id_column = id_column_of(path)
    frame = read_columns(path, (id_column, *TIMES), optional=(LENGTH,), or_empty=True)
    if frame.empty:
        raise EdgesimError(f"{path}: holds no rows, so no device would ever be available")
    device, start_s, end_s, lengths_s = _checked(frame, path, length_s)
    first = int(id_column == DEVICE_ID and device[0] > 0)
    device = device - first
    facts = read_facts(path)
    count = int(device[-1]) + 1 if facts.devices is None else facts.devices
    _check_facts(path, facts, count, int(device[-1]))
    names = {name: texts(values) for name in NAMES if (values := getattr(facts, name)) is not None}
    if id_column == DEVICE_ID:
        names["keys"] = texts(map(str, range(first, first + count)))
    of_device = np.full(count, lengths_s.max())
    if facts.length_s is not None:
        of_device[:] = facts.length_s
    of_device[device] = lengths_s
    intervals = joined(device, start_s, end_s, of_device, count, str(path))
    unobserved_s = None if facts.unobserved_s is None else np.array(facts.unobserved_s, dtype=np.float64)
    if unobserved_s is not None and np.any(beyond := unobserved_s > of_device * (1 + 1e-9)):
        place = int(np.argmax(beyond))
        raise EdgesimError(
            f"{path}: metadata {PREFIX}unobserved_s: expected at most the device's length_s, {of_device[place]:g} s "
            f"(got {unobserved_s[place]:g} for device {place})"
        )
    return replace(
        intervals,
        length_s=of_device,
        unobserved_s=unobserved_s,
        unobserved_as=facts.unobserved_as,
        keys=names.get("keys"),
        models=names.get("models"),
    )


def _check_facts(path: Path, facts: Facts, count: int, last: int) -> None:
    """Raises `EdgesimError` for notes that contradict each other or the rows; ``last`` is the rows' highest device."""
    if count <= last:
        raise EdgesimError(
            f"{path}: metadata {PREFIX}devices: expected at least {last + 1}, since the rows have device {last} "
            f"(got {count})"
        )
    for name in (LENGTH, "unobserved_s", *NAMES):
        values = getattr(facts, name)
        if values is not None and len(values) != count:
            raise EdgesimError(
                f"{path}: metadata {PREFIX}{name}: expected {count} values, one for each device (got {len(values)})"
            )
    if facts.keys is not None and len(set(facts.keys)) < count:
        twice = Counter(facts.keys).most_common(1)[0][0]
        raise EdgesimError(f"{path}: metadata {PREFIX}keys: expected each key once (got {twice[:40]!r} twice)")


def write_intervals(path: Path, intervals: Intervals) -> None:
    """Write a Parquet file from which `read_intervals` reads the same; raises `EdgesimError` if it cannot write."""
    columns = {
        "device": intervals.device.astype(np.int32),
        "start_s": intervals.start_s,
        "end_s": intervals.end_s,
        LENGTH: intervals.length_s[intervals.device],
    }
    facts = {"devices": str(intervals.device_count)}
    # The note is needed only if a device without rows has another length than `read_intervals` assumes.
    without = np.delete(intervals.length_s, intervals.device)
    if np.any(without != intervals.length_s[intervals.device].max(initial=0.0)):
        facts[LENGTH] = json.dumps(intervals.length_s.tolist())
    if intervals.unobserved_s is not None:
        facts["unobserved_s"] = json.dumps(intervals.unobserved_s.tolist())
        facts["unobserved_as"] = intervals.unobserved_as
    for name in NAMES:
        column = getattr(intervals, name)
        if column is not None:
            facts[name] = json.dumps(column.tolist())
    write_parquet(path, pa.table(columns), facts)


def id_column_of(path: Path) -> str:
    """Column, of two, that identifies the devices of a file; raises `EdgesimError` for an unreadable file."""
    names = column_names(path) if path.suffix in (".csv", ".parquet") else []
    return DEVICE_ID if DEVICE_ID in names and DEVICE not in names else DEVICE


def _checked(frame: pd.DataFrame, path: Path, length_s: float | None) -> tuple[Integers, Floats, Floats, Floats]:
    """Devices, starts, ends and recording lengths, [rows] each, ordered by device; refuses the first invalid row."""

    def refuse(bad: Booleans, field: str, expected: str) -> None:
        refuse_rows(path, frame, field, bad, expected)

    columns = {str(name): numbers_of(frame[name]) for name in frame.columns}
    names = list(columns)
    for name, column in columns.items():
        refuse(~np.isfinite(column), name, "a finite number")
    id_column = names[0]
    device, start_s, end_s = (columns[name] for name in names[:3])
    no_id = (device != np.floor(device)) | (device < 0) | (device >= MOST_DEVICES)
    refuse(no_id, id_column, f"a whole number from 0 to {MOST_DEVICES - 1}")
    refuse(start_s < 0, "start_s", "seconds since the start of the trace, 0 or more")
    refuse(end_s <= start_s, "end_s", "an instant after the row's own start_s")
    for name in names[2:]:
        refuse(columns[name] > LONGEST_S, name, f"at most {LONGEST_S:g} s")
    if LENGTH in columns:
        lengths_s = columns[LENGTH]
        refuse(end_s > lengths_s, "end_s", "an instant within the row's own length_s")
    else:
        lengths_s = np.full(len(end_s), end_s.max() if length_s is None else length_s)
        refuse(end_s > lengths_s, "end_s", f"an instant within the length given, {length_s} s")

    if np.any(device[1:] < device[:-1]):
        order = np.argsort(device, kind="stable")
        frame = frame.iloc[order]
        device, start_s, end_s, lengths_s = device[order], start_s[order], end_s[order], lengths_s[order]
    same = np.append(False, device[1:] == device[:-1])
    refuse(same & (start_s < np.roll(start_s, 1)), "start_s", "the rows of a device sorted by time")
    refuse(same & (start_s < np.roll(end_s, 1)), "start_s", "no overlap with the device's row before")
    refuse(same & (lengths_s != np.roll(lengths_s, 1)), LENGTH, "one length in all rows of a device")
    return device.astype(np.int64), start_s, end_s, lengths_s
