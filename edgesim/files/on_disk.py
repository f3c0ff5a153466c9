"""Files that a power cut leaves as they are."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def sync(paths: Sequence[Path]) -> None:
    """Have what was written to files on the disk; raises OSError.

    All at the same time: a journal takes about as long for several files as for one.
    """
    if len(paths) == 1:
        _sync(paths[0])
        return
    with ThreadPoolExecutor(max(1, len(paths))) as pool:
        list(pool.map(_sync, paths))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
