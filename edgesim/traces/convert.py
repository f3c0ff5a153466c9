"""From any recorded format to the project's own Parquet files."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from edgesim.channels.link_file import LinkRows, write_links
from edgesim.devices.profile import Profile, write_profile
from edgesim.errors import EdgesimError
from edgesim.table_file import write_parquet
from edgesim.traces.interval_file import read_intervals, write_intervals
from edgesim.traces.intervals import Intervals, complement, joined
from edgesim.traces.readers import Capacity, Presence, Recorded, read_recording

Unobserved = Literal["absent", "present"]


def convert(
    source: Path,
    target: Path,
    format: str | None = None,
    observed: Path | None = None,
    unobserved: Unobserved = "absent",
    **options: Any,
) -> Recorded:
    """Read a recording, write it as Parquet and return what was written; raises `EdgesimError`, with nothing written.

    ``observed`` is an interval file of when the devices were observed, where the recording itself does not say.
    """
    recorded = read_recording(source, format, **options)
    if isinstance(recorded, Presence):
        settled = settle(recorded, observed, unobserved)
        write_intervals(target, settled)
        return Presence(settled, cut=recorded.cut)
    if observed is not None:
        raise EdgesimError(f"--observed: is for recordings of presence, which {source} is not")
    if isinstance(recorded, Profile):
        write_profile(target, recorded)
    elif isinstance(recorded, LinkRows):
        write_links(target, recorded)
    else:
        write_capacity(target, recorded)
    return recorded


def settle(recorded: Presence, observed: Path | None = None, unobserved: Unobserved = "absent") -> Intervals:
    """The available periods, with time in which nobody looked counted as absent or as present, and noted."""
    available, seen = recorded.available, recorded.observed
    if observed is not None:
        seen = read_intervals(observed)
        if seen.device_count > available.device_count or seen.end_s.max() > available.length_s.max():
            available = _widened(available, seen)
        seen = _widened(seen, available)
    if seen is None:
        return available
    unseen = complement(seen)
    if unobserved == "present":
        columns = (np.concatenate(pair) for pair in zip(_columns(available), _columns(unseen), strict=True))
        device, start_s, end_s = columns
        available = joined(device, start_s, end_s, available.length_s, available.device_count, available.name)
    return replace(available, unobserved_s=unseen.online_s)


def _columns(intervals: Intervals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return intervals.device, intervals.start_s, intervals.end_s


def _widened(intervals: Intervals, other: Intervals) -> Intervals:
    """The same periods, of at least as many devices and as long as the other's."""
    count = max(intervals.device_count, other.device_count)
    length_s = max(intervals.length_s.max(), other.length_s.max())
    return Intervals(*_columns(intervals), np.full(count, length_s), intervals.name)


def write_capacity(path: Path, capacity: Capacity) -> None:
    """Write a Parquet file of trace, t_s, bps, which ``[capacity]`` of an environment file can name."""
    names = [name for name, (t_s, _) in capacity.tables.items() for _ in t_s]
    columns = [np.concatenate(column) for column in zip(*capacity.tables.values(), strict=True)]
    table = {"trace": pa.array(names).dictionary_encode(), "t_s": columns[0], "bps": columns[1]}
    if list(capacity.tables) == [""]:
        del table["trace"]
    write_parquet(path, pa.table(table), {})
