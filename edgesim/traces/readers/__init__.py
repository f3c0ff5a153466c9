"""Readers of recorded formats, and the detection of a file's format."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.base.registry import look_up
from edgesim.base.table_file import column_names
from edgesim.devices.profile import Profile, read_profile
from edgesim.mobility.position_file import COLUMNS as POSITION_COLUMNS
from edgesim.mobility.position_file import PositionRows, read_positions
from edgesim.radio.link_file import COLUMNS as LINK_COLUMNS
from edgesim.radio.link_file import LinkRows, read_links
from edgesim.traces.readers.ai_benchmark import SCORE, read_ai_benchmark
from edgesim.traces.readers.bonnmotion import read_bonnmotion
from edgesim.traces.readers.capacity import read_capacity_tables
from edgesim.traces.readers.fedscale import read_fedscale
from edgesim.traces.readers.fedscale_devices import COLUMNS as PHONES
from edgesim.traces.readers.fedscale_devices import read_fedscale_devices
from edgesim.traces.readers.flash import read_flash
from edgesim.traces.readers.from_intervals import read_interval_availability
from edgesim.traces.readers.gpx import read_gpx
from edgesim.traces.readers.mahimahi import read_mahimahi
from edgesim.traces.readers.mahimahi_bins import COLUMNS as BINS
from edgesim.traces.readers.mahimahi_bins import read_mahimahi_bins
from edgesim.traces.readers.on_off import read_on_off
from edgesim.traces.readers.packed import head
from edgesim.traces.readers.results import Capacity, Recorded, RecordedAvailability
from edgesim.traces.readers.sumo import TIME, read_sumo
from edgesim.traces.readers.xml_events import is_xml

__all__ = [
    "FORMATS", "Capacity", "LinkRows", "PositionRows", "Profile", "Recorded", "RecordedAvailability", "detect",
    "read_recording",
]  # fmt: skip


FORMATS: dict[str, Callable[..., Recorded]] = {
    "intervals": read_interval_availability,
    "on-off": read_on_off,
    "flash": read_flash,
    "fedscale": read_fedscale,
    "fedscale-devices": read_fedscale_devices,
    "mahimahi": read_mahimahi,
    "mahimahi-bins": read_mahimahi_bins,
    "capacity": read_capacity_tables,
    "links": read_links,
    "ai-benchmark": read_ai_benchmark,
    "profile": read_profile,
    "positions": read_positions,
    "sumo": read_sumo,
    "gpx": read_gpx,
    "bonnmotion": read_bonnmotion,
}
"""Readers by the names of the formats; their parameters behind the path are the options of the format."""


def options_of(format: str) -> list[str]:
    """Names of the options of a format; empty for an unknown format."""
    return [*signature(FORMATS[format]).parameters][1:] if format in FORMATS else []


def read_recording(path: Path, format: str | None = None, **options: Any) -> Recorded:
    """Read a file of any of the `FORMATS`, detected if ``format`` is None; options of None count as not given.

    Raises `EdgesimError` for an unknown format, an option that the format does not have, both a length and a file of
    lengths, or a bad file.
    """
    name = detect(path) if format is None else format
    read = look_up(FORMATS, name, "format")
    chosen = {key: value for key, value in options.items() if value is not None}
    for key in chosen:
        if key not in options_of(name):
            owners = [other for other in FORMATS if key in options_of(other)]
            raise EdgesimError(f"{key}: is for the formats {', '.join(owners)}, but {path} is read as {name}")
    if {"length_s", "lengths"} <= chosen.keys():
        raise EdgesimError("length_s, lengths: expected one of them at most")
    return read(path, **chosen)


def detect(path: Path) -> str:
    """Detect the format of a file by its columns or its first bytes; raises `EdgesimError` if that fails."""
    begin = head(path)
    tabular = path.suffix in (".csv", ".parquet")
    name = _by_columns(column_names(path)) if tabular else _by_content(begin, path.name)
    if name is None:
        lacks = _lacks(set(column_names(path))) if tabular else ""
        raise EdgesimError(f"{path}: the format cannot be detected{lacks}; give it with format: {', '.join(FORMATS)}")
    return name


_COLUMNS: tuple[tuple[str, set[str]], ...] = (
    ("intervals", {"device", "start_s", "end_s"}),
    ("intervals", {"device_id", "start_s", "end_s"}),
    ("fedscale-devices", set(PHONES)),
    ("mahimahi-bins", set(BINS)),
    ("positions", set(POSITION_COLUMNS)),
    ("links", set(LINK_COLUMNS)),
    ("capacity", {"t_s", "bps"}),
    ("profile", {"device", "s_per_sample"}),
    ("ai-benchmark", {SCORE}),
)
"""Columns by which a format is known; the first that are all there count."""


def _by_columns(names: list[str]) -> str | None:
    columns = set(names)
    if names[0].startswith(TIME):
        # Between SUMO's columns there are semicolons.
        return "sumo"
    if len(names) > 1 and (names[:2] == ["device", "state"] or names[1] in ("on", "off")):
        return "on-off"
    return next((name for name, needed in _COLUMNS if needed <= columns), None)


def _lacks(columns: set[str]) -> str:
    """Part of a message: columns missing for the format that shares the most; empty if no format shares any."""
    name, needed = max(_COLUMNS, key=lambda entry: len(entry[1] & columns))
    if not needed & columns:
        return ""
    missing = sorted(needed - columns)
    return f": for {name!r} it lacks the column{'s'[: len(missing) > 1]} {', '.join(missing)}"


def _by_content(head: bytes, name: str) -> str | None:
    if name.endswith((".movements", ".movements.gz")):
        return "bonnmotion"
    if head.startswith(TIME.encode()) or (is_xml(head) and b"<fcd-export" in head):
        return "sumo"
    if is_xml(head) and (b"<gpx" in head or b":gpx" in head):
        return "gpx"
    if head.startswith(b"\x80"):
        return "fedscale"
    if head.lstrip().startswith(b"{"):
        return "flash"
    words = head.split(maxsplit=1)
    return "mahimahi" if words and words[0].isdigit() else None
