"""Run folders of nodes that do not see the study: written on the node, and fetched file by file.

The study's process fetches each file in pieces, small enough for Ray to keep them out of its object store. A file has
a temporary name until it is whole and has the hash that the node computed; ``run.json``, which records how the run
ended, is renamed last.
"""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.base.file_digest import file_digest
from edgesim.base.lease import is_of_lease
from edgesim.cluster.nodes import on_node
from edgesim.folder.records import remove_streams
from edgesim.screen.progress import Message
from edgesim.studies.executor import Ending, RunOrder, run_one

PIECE_BYTES = 64 * 2**10
"""Below the 100 KiB from which on Ray puts an answer into its object store."""
_ANSWER_S = 60.0
_LAST = "run.json"


@dataclass(frozen=True)
class Left:
    """The ending and the files of a run on a node."""

    ending: Ending
    node: str
    """Id of the node."""
    folder: str
    files: dict[str, tuple[int, bytes]]
    """Size and SHA-256 of each, by its path in the folder."""


def run_apart(order: RunOrder, cores: int, send: Callable[[Message], None]) -> Left:
    """Carry out a run on a node in a temporary folder there, from the start."""
    import ray

    node = str(ray.get_runtime_context().get_node_id())
    try:
        folder = Path(tempfile.mkdtemp(prefix="edgesim-run-")) / order.folder.name
    except OSError as error:
        return Left(Ending("failed", f"{tempfile.gettempdir()}: {error.strerror}"), node, "", {})
    ending = run_one(replace(order, folder=folder), cores, send)
    files = {}
    if ending.status in ("finished", "failed"):
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not is_of_lease(path.name)]
        files = {str(path.relative_to(folder)): (path.stat().st_size, file_digest(path)) for path in paths}
    return Left(ending, node, str(folder), files)


def fetch(ray: Any, left: Left, folder: Path) -> None:
    """Fetch the files of a run from its node into its folder in the study, whose lease the caller holds.

    Raises `EdgesimError` for a file that arrives damaged, OSError for one that cannot be written, and `RayError` if the
    node is lost.
    """
    read = on_node(ray, _read, left.node, max_retries=0)
    parts = {name: folder / f"{name}.part" for name in left.files}
    try:
        for name, (size, digest) in left.files.items():
            parts[name].parent.mkdir(parents=True, exist_ok=True)
            received = sha256()
            with parts[name].open("wb") as sink:
                for offset in range(0, size, PIECE_BYTES):
                    piece = ray.get(read.remote(f"{left.folder}/{name}", offset), timeout=_ANSWER_S)
                    received.update(piece)
                    sink.write(piece)
            if received.digest() != digest:
                raise EdgesimError(f"{folder / name}: came back from its node with another hash")
    except BaseException:
        for part in parts.values():
            part.unlink(missing_ok=True)
        raise
    if left.files:
        (folder / _LAST).unlink(missing_ok=True)
        remove_streams(folder)
    for name in sorted(left.files, key=lambda name: name == _LAST):
        parts[name].replace(folder / name)


def clear(ray: Any, left: Left) -> None:
    """Remove the files of a run from its node, if the node still answers."""
    remove = on_node(ray, _remove, left.node, max_retries=0)
    with suppress(ray.exceptions.RayError, ray.exceptions.GetTimeoutError):
        ray.get(remove.remote(left.folder), timeout=_ANSWER_S)


def _read(path: str, offset: int) -> bytes:
    """Read a piece of a file, on a node."""
    with open(path, "rb") as source:
        source.seek(offset)
        return source.read(PIECE_BYTES)


def _remove(folder: str) -> None:
    """Remove the folder that `run_apart` made, on a node."""
    if folder:
        shutil.rmtree(Path(folder).parent, ignore_errors=True)
