"""Conversion of capacity recordings into one file of uplinks, one device for each recording."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from edgesim.base.device_keys import texts
from edgesim.base.errors import EdgesimError
from edgesim.radio.capacity_file import Rows
from edgesim.radio.link_file import LinkRows, write_links
from edgesim.traces.readers import Capacity, detect, options_of, read_recording


def convert_links(
    sources: Sequence[Path], target: Path, format: str | None = None, names: str = "*", length_s: float | None = None
) -> LinkRows:
    """Write recordings of capacity as the links of devices 0, 1, ..., in the order given; returns the links.

    The names of the recordings become the keys of the devices, unless two have the same name. The files of a folder
    come in the order of their names, the traces within a file in the file's order. ``names`` is a pattern of the
    recordings to take, such as ``*-up``. ``length_s`` is the length of recordings that do not state one. Raises
    `EdgesimError`, with nothing written.
    """
    recordings: list[tuple[str, Rows, float | None]] = []
    for path in _files(sources):
        recorded = _read(path, format, length_s)
        for name, rows in recorded.tables.items():
            if fnmatchcase(name or path.stem, names):
                recordings.append((name or path.stem, rows, recorded.ends_s.get(name)))
    if not recordings:
        raise EdgesimError(f"links {names}: no trace of {', '.join(map(str, sources))} has such a name")
    taken, tables, ends_s = zip(*recordings, strict=True)
    known_s = [end_s for end_s in ends_s if end_s is not None]
    if known_s and len(known_s) < len(ends_s):
        raise EdgesimError(
            f"{taken[ends_s.index(None)]}: does not say where it ends, while other recordings do; give a length_s"
        )
    device = np.repeat(np.arange(len(tables)), [len(t_s) for t_s, _ in tables])
    t_s, bps = (np.concatenate(column) for column in zip(*tables, strict=True))
    # Keys must be unique.
    keys = texts(taken) if len(set(taken)) == len(taken) else None
    links = LinkRows(device, t_s, bps, np.array(known_s) if known_s else None, keys)
    write_links(target, links)
    return links


def _files(sources: Sequence[Path]) -> Iterator[Path]:
    for source in sources:
        if not source.is_dir():
            yield source
            continue
        paths = sorted(path for path in source.iterdir() if path.is_file() and not path.name.startswith("."))
        if not paths:
            raise EdgesimError(f"{source}: holds no files")
        yield from paths


def _read(path: Path, format: str | None, length_s: float | None) -> Capacity:
    name = detect(path) if format is None else format
    takes_length = "length_s" in options_of(name)
    recorded = read_recording(path, name, length_s=length_s if takes_length else None)
    if not isinstance(recorded, Capacity):
        raise EdgesimError(f"{path}: expected a recording of capacity, to make links of (read as {name})")
    return recorded
