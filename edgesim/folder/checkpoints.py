"""Checkpoints of a run: its state at a round's end, in files from which it resumes as if it had never stopped.

A file ``checkpoint-ROUND-HASH.safetensors`` in the run's folder holds the arrays of a record, as `edgesim.base.saved`
packs it, and as bytes its JSON, what it depends on, and the last rows of the tables, so that one file alone has to be
waited for until it is on the disk. The hash is that of the content: a file that was cut short or edited is not taken.
No code of a file is run, nothing is pickled. Two more names are those of checkpoints that stay in a finished run:
``kept-...`` of rounds that were asked for, ``end-...`` the last one before the run's last round.
"""

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from edgesim.base.errors import EdgesimError
from edgesim.base.file_digest import beginning_hash
from edgesim.base.on_disk import sync, sync_names
from edgesim.folder.run_schema import SCHEMAS

FORMAT = 9
"""Format of the files; raised by one whenever runs cannot resume from records of the format before."""

KINDS = ("checkpoint", "kept", "end")
"""Beginnings of the names of checkpoints."""

_KEPT = 2
"""Checkpoints that an unfinished run keeps: one may be damaged."""

_HASH_LENGTH = 16
_NAME = re.compile(rf"({'|'.join(KINDS)})-(\d+)-([0-9a-f]{{{_HASH_LENGTH}}})\.safetensors")
_ABOUT, _JSON, _ROWS = "about", "json", "rows."
"""Names of arrays, unlike those of a record; the last is their beginning."""
_LARGE = 2**18
"""Bytes whose hash takes longer than to start a thread for it."""


_Count = Annotated[int, Field(ge=0)]


def _checked_table(name: str) -> str:
    if name not in SCHEMAS:
        raise ValueError(f"expected one of {', '.join(SCHEMAS)}")
    return name


_Table = Annotated[str, AfterValidator(_checked_table)]


@dataclass(frozen=True)
class About:
    """Config, inputs, machine and tables of a run, on which its checkpoint depends."""

    round: _Count
    config: Mapping[str, Any]
    """The complete config."""
    inputs: Mapping[str, str]
    """`edgesim.simulation.inputs.input_digests` of the run."""
    machine: Mapping[str, str]
    """Versions of packages and kinds of hardware on which the last bits of results depend."""
    streams: Mapping[_Table, _Count]
    """Bytes of each table's stream at that time."""
    on_disk: Mapping[_Table, _Count]
    """Bytes of each stream that were on the disk for certain; the checkpoint holds those behind them."""
    digests: Mapping[_Table, str]
    """SHA-256, in hexadecimal digits, of the bytes of each stream that were on the disk."""
    rows: Mapping[_Table, _Count]
    """Rows of each table at that time."""
    place: Annotated[Sequence[Any], Field(min_length=3, max_length=3)]
    """Position of its round: the frame, the round in the frame, and whether it is the frame's last."""
    wall_s: float
    """Wall time that the run had taken, in seconds."""
    format: int = FORMAT


_ABOUT_OF = TypeAdapter(About)


@dataclass(frozen=True)
class Packed:
    """A record as `edgesim.base.saved` packs it."""

    json: bytes
    arrays: Mapping[str, NDArray[Any]]

    @property
    def size(self) -> int:
        """Size of the record, in bytes."""
        return len(self.json) + sum(array.nbytes for array in self.arrays.values())


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read."""

    path: Path
    about: About
    record: Packed
    rows: Mapping[str, bytes]
    """End of each table's stream, behind the bytes that were ``on_disk``."""


def write(
    folder: Path, about: About, record: Packed, rows: Mapping[str, bytes] | None = None, beside: Sequence[Path] = ()
) -> Path:
    """Write a checkpoint, whole and on the disk or not at all, and remove all older ones but the newest of them.

    ``rows`` as in `Checkpoint`. The files ``beside`` it, on which it depends, are on the disk before it counts. Raises
    OSError.
    """
    texts = {_ABOUT: json.dumps(vars(about)).encode(), _JSON: record.json}
    texts |= {f"{_ROWS}{table}": rest for table, rest in (rows or {}).items()}
    content = save({**record.arrays, **{name: np.frombuffer(text, dtype=np.uint8) for name, text in texts.items()}})
    part, path = folder / "checkpoint.part", folder / "checkpoint"
    try:
        digest = _written(part, content, beside)
        path = folder / f"checkpoint-{about.round:06d}-{digest}.safetensors"
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        error.filename = str(path)
        raise
    for old in files(folder)[_KEPT:]:
        # The next one is written over it: to free a file and to find room for another takes longer than to write it.
        # Of two names of one file, the other is that of a checkpoint that stays.
        if old.stat().st_nlink == 1:
            old.replace(part)
        else:
            old.unlink()
    return path


def _written(part: Path, content: bytes, beside: Sequence[Path]) -> str:
    """Write a file and bring it and the files ``beside`` it to the disk; returns the hash of its content."""
    if part.is_file() and part.stat().st_nlink > 1:
        # The other name, in a copy of the folder made of links, keeps its content.
        part.unlink()
    with part.open("r+b" if part.is_file() else "wb") as file:
        longer = os.fstat(file.fileno()).st_size > len(content)
        file.write(content)
        if longer:
            # Only there, since a journal may take long to take note of it.
            file.truncate()
    if not beside and len(content) < _LARGE:
        sync([part])
        digest = _hash(content)
    else:
        # The hash does not take as long as the disk.
        with ThreadPoolExecutor(1) as pool:
            hashed = pool.submit(_hash, content)
            sync([part, *beside])
            digest = hashed.result()
    # Of the checkpoints before: now that takes no time, and this one's name may wait, since theirs are there.
    sync_names(part.parent)
    return digest


def round_of(path: Path) -> int:
    """Number of the round at whose end a checkpoint was written."""
    return int(path.name.split("-")[1])


def saved_round(folder: Path) -> int:
    """Number of the round after which an unfinished run was last saved; 0 if it never was."""
    return next((round_of(path) for path in files(folder)), 0)


def files(folder: Path, *kinds: str) -> list[Path]:
    """Checkpoint files of a run, newest first, damaged ones too; of kind ``checkpoint`` unless ``kinds`` are named."""
    wanted = kinds or ("checkpoint",)
    paths = [
        path for path in folder.glob("*.safetensors") if (name := _NAME.fullmatch(path.name)) and name[1] in wanted
    ]
    return sorted(paths, key=lambda path: (round_of(path), path.stat().st_mtime_ns), reverse=True)


def keep(path: Path, kind: str) -> Path:
    """Link or copy a checkpoint so that it stays in the finished run, as ``kept`` (asked for) or ``end`` (the last)."""
    kept = path.with_name(kind + path.name[path.name.index("-") :])
    if not kept.exists():
        # Another name of the same bytes where the file system has such; a copy that is whole or not there elsewhere.
        part = path.with_name("checkpoint.part")
        part.unlink(missing_ok=True)
        try:
            os.link(path, part)
        except OSError:
            shutil.copyfile(path, part)
        part.replace(kept)
    return kept


def keep_end(folder: Path, last_round: int) -> None:
    """Let the last checkpoint before a run's last round stay as its only ``end`` checkpoint."""
    before = [path for path in files(folder, "checkpoint", "end") if round_of(path) < last_round]
    stays = keep(before[0], "end") if before else None
    for path in files(folder, "end"):
        if path != stays:
            path.unlink(missing_ok=True)


def remove(folder: Path, *kinds: str, after: int = -1) -> None:
    """Remove the checkpoints of later rounds than ``after``; ``kinds`` as in `files`."""
    for path in files(folder, *kinds):
        if round_of(path) > after:
            path.unlink(missing_ok=True)
    (folder / "checkpoint.part").unlink(missing_ok=True)


def newest(folder: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """Read the newest whole checkpoint from which an unfinished run may resume, with the streams that it needs.

    None if there is none; ``warn`` is called with a message for each damaged one.
    """
    for path in files(folder, *KINDS):
        checkpoint = read(path, warn)
        if checkpoint is None:
            continue
        if checkpoint.about.format != FORMAT or not (reason := lacking(folder, checkpoint)):
            return checkpoint
        if path.name.startswith("checkpoint"):
            warn(f"{path.name} is damaged ({reason})")
    return None


def whole(folder: Path, warn: Callable[[str], None], until: float = math.inf) -> Iterator[Checkpoint]:
    """Yield the checkpoints of all kinds that are not damaged and of `FORMAT`, up to a round, the newest first.

    ``warn`` is called with a message for each damaged one.
    """
    checkpoints = (read(path, warn) for path in files(folder, *KINDS) if round_of(path) <= until)
    yield from (saved for saved in checkpoints if saved is not None and saved.about.format == FORMAT)


def read(path: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """Read a checkpoint; None if it is damaged, and then ``warn`` is called with a message."""
    try:
        return _read(path)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = ".".join(map(str, detail["loc"]))
        warn(f"{path.name} is damaged (what it depends on: {place}: {detail['msg']})")
    except (EdgesimError, OSError, ValueError, LookupError, TypeError, RecursionError, SafetensorError) as error:
        warn(f"{path.name} is damaged ({str(error).partition(chr(10))[0]})")
    return None


def _read(path: Path) -> Checkpoint:
    content = path.read_bytes()
    if _hash(content) != path.stem.rpartition("-")[2]:
        raise EdgesimError("it was cut short or changed")
    arrays = load(content)
    text = arrays.pop(_ABOUT).tobytes()
    about = json.loads(text)
    if not isinstance(about, dict) or type(about["format"]) is not int:
        raise EdgesimError("what it depends on is no object of JSON with a format")
    if about["format"] != FORMAT:
        # Whatever else another format says is not looked at.
        other = About(round_of(path), {}, {}, {}, {}, {}, {}, {}, [], 0.0, about["format"])
        return Checkpoint(path, other, Packed(b"", {}), {})
    tables = [name for name in arrays if name.startswith(_ROWS)]
    rows = {name.removeprefix(_ROWS): arrays.pop(name).tobytes() for name in tables}
    checked = _ABOUT_OF.validate_json(text, strict=True)
    by_table = checked.streams, checked.on_disk, checked.digests, checked.rows
    if checked.round != round_of(path) or any(values.keys() != SCHEMAS.keys() for values in by_table):
        raise EdgesimError("what it depends on is of another round, or lacks a table")
    return Checkpoint(path, checked, Packed(arrays.pop(_JSON).tobytes(), arrays), rows)


def lacking(folder: Path, checkpoint: Checkpoint) -> str:
    """Reason why a folder lacks rows that its run had at a checkpoint of `FORMAT`; empty if it lacks none."""
    for table, size in checkpoint.about.on_disk.items():
        path = folder / f"{table}.arrow"
        there = path.stat().st_size if path.is_file() else 0
        if there < size:
            return f"{table}.arrow has {there} of the {size} bytes that were on the disk then"
        if beginning_hash(path, size).hexdigest() != checkpoint.about.digests[table]:
            return f"{table}.arrow has other bytes than were on the disk then"
        if size + len(checkpoint.rows.get(table, b"")) != checkpoint.about.streams[table]:
            return f"it lacks rows of {table}"
    return ""


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_HASH_LENGTH]
