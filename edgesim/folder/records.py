"""The run folder: tables with one row per event, ``config.toml`` and ``run.json``.

Rows stream to disk as Arrow IPC during a run, so that a killed run keeps every round that finished before its
last half second; the Parquet files are written when the run closes. Readers take the Parquet file, or else the stream.
The streams stay while the folder has checkpoints (`edgesim.folder.checkpoints`), from which the run can resume.
"""

import errno
import itertools
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import tomli_w
from numpy.typing import NDArray

from edgesim.base.errors import EdgesimError
from edgesim.base.file_digest import beginning_hash, file_digest
from edgesim.base.lease import Lease
from edgesim.base.on_disk import in_place_of, sync
from edgesim.base.paths import as_path, system_errors
from edgesim.base.processes import uninterrupted
from edgesim.base.text_file import read_json, read_toml
from edgesim.folder import checkpoints, digests
from edgesim.folder.rows_file import ABSENCES, WAYS
from edgesim.folder.run_schema import MUCH_BYTES, SCHEMAS, checked

SCHEMA_VERSION = 2
"""2: ``activities`` have ``task`` and ``away_s``, ``updates`` have ``task``, ``rounds`` have ``model_held``."""

_FLUSH_S = 0.5
"""Seconds that rows may wait in memory: writing them after every round would take longer than many rounds do."""

MOST_REST_BYTES = 2**16
"""Bytes of rows that a checkpoint holds at most; more are written to the tables' own streams, which takes longer."""

ENDS = ("rounds", "stop_at_s")
"""Keys of a config that say when a run ends; ``ends`` of ``run.json`` has those that the run has."""

OUTSIDE = "outside"
"""Fact ``decisions`` of a run whose decisions did not come from its policy; it is named in place of the policy."""

_ADDED = {"handovers"}
"""Tables that run folders made before there was the table lack; they are read as empty."""

_RUN_FACTS: dict[str, tuple[type, ...]] = {
    "schema_version": (int, float),
    "status": (str,),
    "reason": (str,),
    "wall_s": (int, float),
    "unobserved_share": (int, float),
    "unobserved_as": (str,),
    "device_kind": (str,),
    "back_end": (str,),
    "back_end_notice": (str,),
    "decisions": (str,),
    "notes": (dict,),
    "inputs": (dict,),
    digests.KEY: (dict,),
}
"""Keys of ``run.json`` that edgesim reads again, with the types that each value may have."""

_KIND_NAMES = {str: "a text", int: "a number", float: "a number", dict: "an object of texts"}


class TableWriter(Protocol):
    """Takes the rows of a run's tables."""

    def write(self, table: str, columns: Mapping[str, Sequence[Any] | Any]) -> None:
        """Append rows to a table of `SCHEMAS`, passed as one sequence or array per column (missing ones are null)."""


class NoTables:
    """Tables of a run that keeps none."""

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Leave rows out."""


class RunWriter:
    """Writes one run folder; `close` turns the streams into Parquet and records how the run ended."""

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any],
        run: Mapping[str, Any],
        resume_from: checkpoints.Checkpoint | None = None,
        lease: Lease | None = None,
    ) -> None:
        """Begin the tables, or resume them from a checkpoint; takes the folder's lease if no ``lease`` is passed."""
        # Arrow takes a leading tilde for the home folder, so it gets absolute paths.
        self.folder = folder.absolute()
        self._run: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "status": "running", **run}
        self._lease = Lease(folder) if lease is None else lease
        try:
            with system_errors(f"{folder}: cannot be made a run folder", "; choose another folder"):
                self._begin(config, resume_from)
        except BaseException:
            self._lease.release()
            raise
        self._pending: dict[str, list[Mapping[str, Any]]] = {name: [] for name in SCHEMAS}
        self._flushed_s = time.monotonic()
        self._last_round = 0
        self._whole = True
        """Whether no batch of a stream was written in part."""

    def _begin(self, config: Mapping[str, Any], resume_from: checkpoints.Checkpoint | None) -> None:
        """Write the first files, replacing those of an unfinished run that is run again.

        Raises `EdgesimError` where streams are no longer what they were at the checkpoint from which the run resumes.
        """
        paths = {name: self.folder / f"{name}.arrow" for name in SCHEMAS}
        about = None if resume_from is None else resume_from.about
        sizes = {} if about is None else about.on_disk
        for name, size in sizes.items():
            if (paths[name].stat().st_size if paths[name].is_file() else 0) < size:
                raise EdgesimError(f"{paths[name]}: another process has changed it; start again")
        # Before the streams change on which they depend.
        checkpoints.remove(self.folder, *checkpoints.KINDS, after=0 if about is None else about.round)
        if (self.folder / "run.json").is_file():
            # It has the digests of files that are about to change.
            _write_run_json(self.folder, self._run, on_disk=False)
        write_whole(self.folder / "config.toml", tomli_w.dumps(dict(config)))
        for name in (*(f"{table}.parquet" for table in SCHEMAS), ABSENCES.name, WAYS.name):
            (self.folder / name).unlink(missing_ok=True)
        _write_run_json(self.folder, self._run, on_disk=False)
        for name, path in paths.items():
            _truncate(path, sizes.get(name, 0))
        self._sinks = {name: pa.OSFile(str(path), "ab") for name, path in paths.items()}
        self._rows = dict.fromkeys(SCHEMAS, 0) if about is None else dict(about.rows)
        self._on_disk = dict.fromkeys(SCHEMAS, 0) if about is None else dict(about.on_disk)
        """Bytes of each stream that are on the disk for certain."""
        self._hashes = {name: beginning_hash(path, self._on_disk[name]) for name, path in paths.items()}
        """Hash of each stream, as far as it is written."""
        self._on_disk_digests = self._digests()
        self._sizes = dict(self._on_disk)
        self._rest: dict[str, list[bytes]] | None = {name: [] for name in SCHEMAS}
        """Bytes of each stream that may not be on the disk yet; None where they are too many to be held in memory."""
        for name in SCHEMAS:
            begin = _versioned(name).serialize().to_pybytes()
            self._append(name, begin if resume_from is None else resume_from.rows.get(name, b""))

    def _append(self, table: str, content: bytes) -> None:
        """Write bytes to a table's stream."""
        self._sinks[table].write(content)
        self._hashes[table].update(content)
        self._sizes[table] += len(content)
        if sum(self._sizes.values()) - sum(self._on_disk.values()) > MOST_REST_BYTES:
            self._rest = None
        if self._rest is not None:
            self._rest[table].append(content)

    def _digests(self) -> dict[str, str]:
        return {name: digest.hexdigest() for name, digest in self._hashes.items()}

    def write(self, table: str, columns: Mapping[str, Sequence[Any] | Any]) -> None:
        """Append rows to a table, passed as one sequence or array per column (missing columns are null).

        Rows wait in memory. They go to disk together with a row of ``rounds``, which is the last row of its round, once
        half a second has passed since the last time.
        """
        if len(next(iter(columns.values()))) == 0:
            return
        self._pending[table].append(columns)
        if table == "rounds" and time.monotonic() - self._flushed_s >= _FLUSH_S:
            with self._writing():
                self._flush()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Let no signal interrupt a block that writes; raises `EdgesimError` if the disk is full or fails."""
        remedy = "; the rounds written before can be read, and the next start runs it again"
        with uninterrupted(), system_errors(f"{self.folder}: cannot be written", remedy):
            self._lease.check()
            try:
                yield
            except OSError:
                self._whole = False
                raise

    def _flush(self) -> None:
        # Rows of ``rounds`` come last: where they are, all rows of their rounds are.
        for name, schema in sorted(SCHEMAS.items(), key=lambda table: table[0] == "rounds"):
            pending = self._pending[name]
            if pending:
                arrays = [_column(field, pending) for field in schema]
                # Not by a stream writer of Arrow's, which cannot append to a stream.
                batch = pa.record_batch(arrays, schema=_versioned(name))
                self._append(name, batch.serialize().to_pybytes())
                self._sinks[name].flush()
                self._rows[name] += batch.num_rows
                pending.clear()
        self._flushed_s = time.monotonic()

    def save(self, about: Mapping[str, Any], record: checkpoints.Packed, keep: bool = False) -> None:
        """Write a checkpoint of the rows until now and a record; ``about`` holds `checkpoints.About` without streams.

        With ``keep`` it stays when the run has finished. On return all of it is on the disk. Raises `EdgesimError` if
        the disk is full or fails.
        """
        with self._writing():
            self._flush()
            sizes, beside = dict(self._sizes), list[Path]()
            on_disk, hashes = self._on_disk, self._on_disk_digests
            rows = {name: b"".join(parts) for name, parts in (self._rest or {}).items() if parts}
            if self._rest is None:
                beside = [self.folder / f"{name}.arrow" for name in SCHEMAS if sizes[name] > on_disk[name]]
                on_disk, hashes = sizes, self._digests()
            now = checkpoints.About(**about, streams=sizes, on_disk=on_disk, digests=hashes, rows=dict(self._rows))
            path = checkpoints.write(self.folder, now, record, rows, beside)
            if self._rest is None:
                self._on_disk, self._on_disk_digests, self._rest = on_disk, hashes, {name: [] for name in SCHEMAS}
            if keep:
                checkpoints.keep(path, "kept")

    def note(self, **facts: Any) -> None:
        """Add facts to ``run.json``, which a power cut may take: the run's end writes them through to the disk."""
        self._run |= facts
        with self._writing():
            _write_run_json(self.folder, self._run, on_disk=False)

    def close(self, status: str, cut: bool = False, **facts: Any) -> None:
        """End the run with a status (``finished``, ``interrupted``, ``failed``) and facts for ``run.json``.

        ``cut`` is whether it was broken off, so that the rows of a round that was being recorded are dropped. A run
        that is not finished keeps its checkpoints, and the streams that they need.
        """
        self._run |= {"status": status, **facts}
        try:
            with self._writing():
                resumes = status != "finished" and bool(checkpoints.files(self.folder, "checkpoint", "kept"))
                if self._whole:
                    self._close_tables(cut)
                self._run[digests.KEY] = digests.digests_of(self.folder)
                _write_run_json(self.folder, self._run)
                if self._whole and status == "finished":
                    checkpoints.keep_end(self.folder, self._last_round)
                if self._whole and not resumes:
                    # The record of the run's end comes first: a run killed in between is finished, or resumes.
                    remove_streams(self.folder)
        finally:
            self._lease.release()

    def _close_tables(self, cut: bool) -> None:
        self._flush()
        for sink in self._sinks.values():
            sink.close()
        last = pc.max(_read_stream(self.folder / "rounds.arrow", "rounds")["round"]).as_py() or 0
        self._last_round = last
        with ExitStack() as written:
            parts = {name: written.enter_context(in_place_of(self.folder / f"{name}.parquet")) for name in SCHEMAS}
            for name, part in parts.items():
                table = _read_stream(self.folder / f"{name}.arrow", name)
                if cut and "round" in table.column_names:
                    table = table.filter(pc.less_equal(table["round"], last))
                # One chunk, independent of when rows were flushed, so that equal tables give equal bytes.
                pq.write_table(table.combine_chunks(), part)
            # Before ``run.json`` says that they are there, and the streams are removed.
            sync([*parts.values()])


def _write_run_json(folder: Path, facts: Mapping[str, Any], on_disk: bool = True) -> None:
    write_whole(folder / "run.json", json.dumps(facts, indent=2) + "\n", on_disk)


def note_failure(folder: Path, config: Mapping[str, Any], reason: str) -> None:
    """Note in a folder, whose lease is held, why its run could not begin, or how its process ended."""
    with system_errors(f"{folder}: cannot be written"):
        if not (folder / "config.toml").is_file():
            write_whole(folder / "config.toml", tomli_w.dumps(dict(config)))
        run = read_run(folder) if (folder / "run.json").is_file() else {"schema_version": SCHEMA_VERSION}
        _write_run_json(folder, {**run, "status": "failed", "reason": reason})


def note_pruned(folder: Path, reason: str) -> None:
    """Note in a folder, whose lease is held, that its run was pruned after its last checkpoint, and why."""
    with system_errors(f"{folder}: cannot be written"):
        _write_run_json(folder, {**read_run(folder), "status": "pruned", "reason": reason})


def copy_rows(source: Path, folder: Path, rows: Mapping[str, int]) -> tuple[dict[str, int], dict[str, str]]:
    """Begin the streams of a run with the first rows of the tables of another run, or of its own.

    Returns the bytes of each stream, and their SHA-256 in hexadecimal digits. Raises `EdgesimError` where there are
    fewer rows, or where they are not those that the other run wrote.
    """
    sizes, hashes = {}, {}
    saved = checkpoints.newest(source, lambda _: None)
    for name, count in rows.items():
        table = _whole_rows(source, name, saved)
        if len(table) < count:
            raise EdgesimError(f"{source}: {name} has {len(table)} of the {count} rows that it had at the checkpoint")
        stream = folder / f"{name}.arrow"
        with in_place_of(stream) as part, pa.OSFile(str(part), "wb") as sink:
            sink.write(_versioned(name).serialize())
            for batch in table.slice(0, count).combine_chunks().to_batches():
                sink.write(batch.serialize())
        sizes[name], hashes[name] = stream.stat().st_size, file_digest(stream).hex()
    return sizes, hashes


def _whole_rows(folder: Path, table: str, saved: checkpoints.Checkpoint | None) -> pa.Table:
    """Rows of a table that the run certainly wrote: those of its Parquet file, or those of a checkpoint.

    Raises `EdgesimError` for a Parquet file that is damaged.
    """
    parquet = folder / f"{table}.parquet"
    if parquet.is_file():
        digests.check_file(parquet)
        return pq.read_table(parquet, schema=_versioned(table))
    if saved is None:
        return _versioned(table).empty_table()
    size = saved.about.on_disk[table]
    begun = (folder / f"{table}.arrow").read_bytes()[:size] if size else b""
    return _batches(pa.BufferReader(begun + saved.rows.get(table, b"")), table)


def _truncate(path: Path, size: int) -> None:
    """Cut a stream to its first bytes, after copying it if it has another name (in a copy of the folder by links)."""
    if not size:
        # Of a file cut to nothing, ext4 would write the next bytes when it is closed, and who removes it would wait.
        path.unlink(missing_ok=True)
        return
    if path.stat().st_nlink > 1:
        with in_place_of(path) as part:
            shutil.copyfile(path, part)
    os.truncate(path, size)


def remove_streams(folder: Path) -> None:
    """Remove the streams and checkpoints of a run, which it needs only until its tables are written."""
    checkpoints.remove(folder)
    for name in SCHEMAS:
        (folder / f"{name}.arrow").unlink(missing_ok=True)


def _column(field: pa.Field, parts: Sequence[Mapping[str, Any]]) -> pa.Array:
    """Join the parts of a column that several writes passed, in their order."""
    name = field.name
    chunks = [part.get(name) for part in parts]
    if all(chunk is None for chunk in chunks):
        return pa.nulls(sum(map(_length, parts)), field.type)
    whole: Any
    if len(chunks) == 1:
        whole = chunks[0]
    elif all(isinstance(chunk, np.ndarray) for chunk in chunks):
        whole = np.concatenate(cast("list[NDArray[Any]]", chunks))
    else:
        filled = [[None] * _length(part) if chunk is None else chunk for chunk, part in zip(chunks, parts, strict=True)]
        whole = list(itertools.chain.from_iterable(filled))
    return pa.array(whole, type=field.type, from_pandas=False)


def _length(part: Mapping[str, Any]) -> int:
    return len(next(iter(part.values())))


_OF_THE_SYSTEM = (Path("/dev"), Path("/dev/fd"))


def write_whole(path: Path, text: str, on_disk: bool = False) -> None:
    """Write a text file that is never seen half-written, with ``on_disk`` not after a power cut either.

    Raises OSError that names it. What the system gives in ``/dev`` (a terminal, a pipe of the shell) is written to, not
    replaced.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.absolute().parent in _OF_THE_SYSTEM:
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    try:
        with in_place_of(path, on_disk) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        # Writing to an open file, which a full disk refuses, names none.
        error.filename = str(path)
        raise


def read_table(folder: Path | str, table: str) -> pd.DataFrame:
    """Read one table of a run folder, also of an unfinished run, with the columns of `SCHEMAS`.

    Columns that are not in `SCHEMAS` are left out. Raises `EdgesimError` that names the file where it is not what the
    run wrote, and the column if one is missing, has another type or lacks a value.
    """
    folder = as_path(folder, "folder")
    if table not in SCHEMAS:
        raise EdgesimError(f"unknown table {table!r}; the tables of a run are {', '.join(SCHEMAS)}")
    path = _file_of(folder, table)
    if not path.is_file():
        is_older = (folder / "run.json").is_file() and digests.expected_digest(folder / f"{table}.parquet") is None
        if table in _ADDED and is_older:
            return checked(SCHEMAS[table].empty_table(), table, path)
        raise EdgesimError(_no_run(folder, f"{table}.parquet"))
    try:
        if path.suffix == ".parquet":
            digests.check_file(path)
            rows = pq.ParquetFile(path).read(use_threads=path.stat().st_size > MUCH_BYTES)
        else:
            rows = _read_stream(path, table)
        return checked(rows, table, path)
    # A Parquet file with damaged pages can raise any error of the library, MemoryError too.
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise EdgesimError(f"{path}: cannot be read: {reason}") from None


def _file_of(folder: Path, table: str) -> Path:
    """The Parquet file of a table or, where there is none, its stream."""
    parquet = folder / f"{table}.parquet"
    return parquet if parquet.is_file() else parquet.with_suffix(".arrow")


def read_rows(folder: Path | str, table: str) -> pd.DataFrame:
    """Read a table of which every run with a round has rows; raises as `read_table`, and if the table is empty."""
    rows = read_table(folder, table)
    if rows.empty:
        raise EdgesimError(f"{_file_of(Path(folder), table)}: the table has no rows; expected at least one")
    return rows


def _no_run(folder: Path, lacking: str) -> str:
    """Message for a path that is no run folder, or for a run folder that lacks a file."""
    if not folder.exists():
        return f"{folder}: no such folder"
    return f"{folder}: not a run folder: " + ("it is a file" if folder.is_file() else f"{lacking} is missing")


def read_config(folder: Path | str) -> dict[str, Any]:
    """Read the resolved config of a run; raises `EdgesimError` if it is missing, unreadable or was edited."""
    path = as_path(folder, "folder") / "config.toml"
    config = read_toml(path, missing=_no_run(path.parent, path.name))
    digests.check_file(path)
    return config


def setting(folder: Path, config: Mapping[str, Any], key: str, *kinds: type) -> Any:
    """Value at a key such as ``round.tmax_s`` of a run's config; raises `EdgesimError` if not of ``kinds``."""
    value: Any = config
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise EdgesimError(f"{folder / 'config.toml'}: {key} is missing; expected a resolved config")
        value = value[part]
    if not _is_one_of(value, kinds):
        raise EdgesimError(f"{folder / 'config.toml'}: {key}: expected {_KIND_NAMES[kinds[0]]} (got {value!r})")
    return value


def ends(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a config that end its run, by key (`ENDS`)."""
    return {key: config[key] for key in ENDS if key in config}


def is_episode(folder: Path) -> bool:
    """Whether a folder holds an episode, whose decisions came from outside; raises `EdgesimError`."""
    return (folder / "run.json").is_file() and read_run(folder).get("decisions") == OUTSIDE


def read_run(folder: Path | str) -> dict[str, Any]:
    """Read ``run.json``; raises `EdgesimError` if it is unreadable, or a fact is missing or of a wrong type."""
    folder = as_path(folder, "folder")
    path = folder / "run.json"
    run = read_json(path, missing=_no_run(folder, "run.json"))
    needed = {"schema_version": True, "status": True}
    needed |= {"back_end": "device_kind" in run, "unobserved_as": bool(run.get("unobserved_share"))}
    for key, kinds in _RUN_FACTS.items():
        if key not in run and needed.get(key):
            raise EdgesimError(f"{path}: {key} is missing; expected {_KIND_NAMES[kinds[0]]}")
        if key in run and not _is_one_of(run[key], kinds):
            raise EdgesimError(f"{path}: {key}: expected {_KIND_NAMES[kinds[0]]} (got {run[key]!r})")
    if (version := run["schema_version"]) != SCHEMA_VERSION:
        age = "a newer" if version > SCHEMA_VERSION else "an older"
        raise EdgesimError(f"{path}: schema_version is {version:g}, made by {age} edgesim; expected {SCHEMA_VERSION}")
    return run


def _is_one_of(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether a value has one of the types: numbers must be finite and not bool, objects may hold texts only."""
    if not isinstance(value, kinds) or isinstance(value, bool):
        return False
    if isinstance(value, dict):
        return all(isinstance(inner, str) for inner in value.values())
    return not isinstance(value, int | float) or abs(value) <= sys.float_info.max


@cache
def _versioned(table: str) -> pa.Schema:
    return SCHEMAS[table].with_metadata({"edgesim_table": table, "schema_version": str(SCHEMA_VERSION)})


def _read_stream(path: Path, table: str) -> pa.Table:
    """Read every whole batch of an IPC stream in a file."""
    with pa.OSFile(str(path), "rb") as source:
        return _batches(source, table)


def _batches(source: pa.NativeFile, table: str) -> pa.Table:
    """Read every whole batch of an IPC stream; a torn last batch (a killed run) is left out."""
    batches, schema = [], _versioned(table)
    try:
        reader = pa.ipc.open_stream(source)
        schema = reader.schema
        while True:
            batches.append(reader.read_next_batch())
    except (StopIteration, pa.ArrowInvalid, OSError):
        pass
    return pa.Table.from_batches(batches, schema=schema)
