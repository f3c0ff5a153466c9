"""Conversion of any recorded format into the project's own Parquet files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from edgesim.base.arrays import Floats, Integers
from edgesim.base.device_keys import Texts, models_of_all, numbered
from edgesim.base.errors import EdgesimError
from edgesim.base.table_facts import Unobserved
from edgesim.base.table_file import write_parquet
from edgesim.devices.profile import Profile, write_profile
from edgesim.mobility.position_file import PositionRows, write_positions
from edgesim.radio.link_file import LinkRows, write_links
from edgesim.traces.interval_file import read_intervals, write_intervals
from edgesim.traces.intervals import Intervals, complement, joined
from edgesim.traces.readers import Capacity, Recorded, RecordedAvailability, read_recording
from edgesim.traces.recorded_stays import recorded_stays

_LEAST_GAP_S, _MOST_GAP_S = 0.1, 1e6


def convert(
    source: Path,
    target: Path,
    format: str | None = None,
    observed: Path | None = None,
    unobserved: Unobserved = "absent",
    stays: Path | None = None,
    gap_s: float | None = None,
    **options: Any,
) -> Recorded:
    """Write a recording of any format as Parquet; returns the recording as written.

    ``observed`` is an interval file of when the devices were observed, for recordings that do not say. If both files
    have keys, devices are matched by them, else by their numbers. Of recorded positions the periods in which devices
    are on their way are written, too, as the interval file ``stays``: a gap of more than ``gap_s`` (60 when absent) in
    a device's rows ends one. Raises `EdgesimError`, with nothing written.
    """
    recorded = read_recording(source, format, **options)
    need_availability(source, recorded, observed)
    if isinstance(recorded, PositionRows):
        if stays is None and gap_s is not None:
            raise EdgesimError("gap_s: is for the intervals of stays, which needs a file to write them to")
        if stays is not None and stays.resolve() == target.resolve():
            raise EdgesimError(f"stays: expected another file than that of the positions (got {stays})")
        intervals = None if stays is None else recorded_stays(recorded, _gap_s(gap_s), source)
        write_positions(target, recorded)
        if stays is not None and intervals is not None:
            write_intervals(stays, intervals)
        return recorded
    if stays is not None or gap_s is not None:
        raise EdgesimError(f"stays, gap_s: are for recorded positions, which {source} are not")
    if isinstance(recorded, RecordedAvailability):
        settled = settle(recorded, observed, unobserved)
        write_intervals(target, settled)
        return RecordedAvailability(settled, cut=recorded.cut)
    if isinstance(recorded, Profile):
        write_profile(target, recorded)
    elif isinstance(recorded, LinkRows):
        write_links(target, recorded)
    else:
        write_capacity(target, recorded)
    return recorded


def need_availability(source: Path, recorded: Recorded, observed: Path | None) -> None:
    """Raise `EdgesimError` for periods of observation beside a recording of anything but availability."""
    if observed is not None and not isinstance(recorded, RecordedAvailability):
        raise EdgesimError(f"observed: is for recordings of availability, which {source} is not")


def settle(
    recorded: RecordedAvailability, observed: Path | None = None, unobserved: Unobserved = "absent"
) -> Intervals:
    """Available periods of a recording, whose unobserved time counts as absent or present (``unobserved``)."""
    available, seen = recorded.available, recorded.observed
    if observed is not None:
        seen = read_intervals(observed)
    if seen is None:
        return available
    seen, keys = _numbered_alike(seen, available)
    length_s = _lengths_s(available, seen)
    unseen = complement(joined(*_columns(seen), length_s, len(length_s), seen.name))
    columns = _columns(available)
    if unobserved == "present":
        both = zip(columns, _columns(unseen), strict=True)
        columns = (np.concatenate(next(both)), np.concatenate(next(both)), np.concatenate(next(both)))
    settled = joined(*columns, length_s, len(length_s), available.name)
    models = models_of_all(available.models, len(length_s))
    return replace(settled, unobserved_s=unseen.online_s, unobserved_as=unobserved, keys=keys, models=models)


def _numbered_alike(seen: Intervals, available: Intervals) -> tuple[Intervals, Texts | None]:
    """Periods ``seen`` by the device numbers of ``available``, new devices numbered last, and the keys of all."""
    known = available.device_count
    if available.keys is None or seen.keys is None:
        # Keys must name all devices or none.
        return seen, available.keys if seen.device_count <= known else None
    number, keys = numbered(available.keys, seen.keys)
    length_s = np.append(available.length_s, seen.length_s[number >= known])
    device, start_s, end_s = _columns(seen)
    alike = joined(number[device], start_s, end_s, np.inf, len(length_s), seen.name)
    return replace(alike, length_s=length_s), keys


def _columns(intervals: Intervals) -> tuple[Integers, Floats, Floats]:
    return intervals.device, intervals.start_s, intervals.end_s


def _lengths_s(available: Intervals, seen: Intervals) -> Floats:
    """Length of each device's recording, extended to the end of its observation, [devices]."""
    known = available.device_count
    length_s = np.append(available.length_s, seen.length_s[known:])
    np.maximum.at(length_s, seen.device, seen.end_s)
    # Recordings of equal length were ended by one clock, so they are extended together and stay equal.
    return np.full(len(length_s), length_s.max()) if np.ptp(available.length_s) == 0 else length_s


def _gap_s(gap_s: float | None) -> float:
    """The longest gap within a stay, or its default; raises `EdgesimError` for one that no recording has."""
    if gap_s is not None and not _LEAST_GAP_S <= gap_s <= _MOST_GAP_S:
        raise EdgesimError(f"gap_s: expected seconds from {_LEAST_GAP_S:g} to {_MOST_GAP_S:g} (got {gap_s:g})")
    return 60.0 if gap_s is None else gap_s


def write_capacity(path: Path, capacity: Capacity) -> None:
    """Write a Parquet file of trace, t_s, bps, which ``[capacity]`` of an environment file can name."""
    names = [name for name, (t_s, _) in capacity.tables.items() for _ in t_s]
    columns = [np.concatenate(column) for column in zip(*capacity.tables.values(), strict=True)]
    table = {"trace": pa.array(names).dictionary_encode(), "t_s": columns[0], "bps": columns[1]}
    if list(capacity.tables) == [""]:
        del table["trace"]
    write_parquet(path, pa.table(table), {})
