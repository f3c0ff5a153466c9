"""The files that a run reads, as hashes: a finished run is reused only while they hold what they held then."""

import hashlib
import importlib.util
import os
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

from edgesim.channels.environment import environment_files
from edgesim.config import RunConfig
from edgesim.content import find
from edgesim.errors import EdgesimError
from edgesim.learning.datasets import dataset_files


def input_digests(config: RunConfig) -> dict[str, str]:
    """Hash (SHA-256) of what lies behind every key of a complete config that names files, by ``section.key``.

    A file counts by its content, a folder by names, sizes and times of change of the files in it that are not hidden.
    A key whose files are not there has no hash.
    """
    links = config.devices.links
    sources = {
        "radio.channel": partial(environment_files, config.radio.channel),
        "topology.file": partial(_content, "topologies", config.topology.file, ".toml"),
        "devices.profile": partial(_content, "traces", config.devices.profile, ".parquet"),
        "devices.links.file": partial(_content, "traces", None if links is None else links.file, ".parquet"),
        "availability.file": partial(_content, "traces", config.availability.options.get("file"), ".parquet"),
        "data.dataset": partial(dataset_files, config.data),
        "learning.model": partial(_model_file, config.learning.model if config.learning.training == "real" else ""),
    }
    digests = {}
    for key, files in sources.items():
        try:
            paths = files()
            if paths:
                digests[key] = _digest(paths)
        except (EdgesimError, OSError):
            # Where the run needs the file it is refused with words of its own.
            continue
    return digests


def _content(kind: str, name: str | None, suffix: str) -> list[Path]:
    return [] if name is None else [find(kind, name, suffix)]


def _model_file(name: str) -> list[Path]:
    """The module of a model of the user's own, found without running it."""
    module = name.rpartition(".")[0]
    try:
        spec = importlib.util.find_spec(module) if module else None
    except Exception:  # the packages around it are imported, and may do anything
        return []
    return [Path(spec.origin)] if spec is not None and spec.has_location and spec.origin else []


def _digest(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        if path.is_dir():
            for line in _listing(path):
                digest.update(line)
        else:
            state = path.stat()
            digest.update(_file_digest(path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns))
    return digest.hexdigest()


@cache
def _file_digest(path: Path, *state: int) -> bytes:
    """Hash of a file's content; while this process lives, a file in the same state is read once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _listing(root: Path) -> Iterator[bytes]:
    for folder, inner, files in os.walk(root, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(file for file in files if not file.startswith(".")):
            path = Path(folder) / name
            state = path.stat()
            below = path.relative_to(root).as_posix()
            yield f"{state.st_size} {state.st_mtime_ns} {below}\n".encode(errors="surrogateescape")
