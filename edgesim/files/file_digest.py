"""The hash of a file's content."""

import hashlib
import os
from functools import cache
from pathlib import Path


def file_digest(path: Path) -> bytes:
    """SHA-256 of a file's content; a process reads a file only once while its size, times and inode do not change."""
    state = os.stat(path)
    return _read(str(path), state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@cache
def _read(path: str, *state: int) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
