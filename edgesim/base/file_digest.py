"""The hash of a file's content, or of its beginning."""

import hashlib
import os
from functools import cache
from pathlib import Path

_PIECE_BYTES = 2**20


def file_digest(path: Path) -> bytes:
    """SHA-256 of a file's content; a process reads a file only once while its `file_state` does not change."""
    return _read(str(path), *file_state(path))


def file_state(path: Path) -> tuple[int, int, int, int]:
    """Inode, size in bytes and times of a file, which differ once it has been written again."""
    state = os.stat(path)
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def beginning_hash(path: Path, size: int) -> "hashlib._Hash":
    """SHA-256 of the first ``size`` bytes of a file, to which more can be added; of fewer where it has fewer."""
    digest = hashlib.sha256()
    if size:
        with open(path, "rb") as file:
            while size > 0 and (piece := file.read(min(size, _PIECE_BYTES))):
                digest.update(piece)
                size -= len(piece)
    return digest


@cache
def _read(path: str, *state: int) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
