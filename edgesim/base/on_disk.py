"""Files that a power cut leaves as they are."""

import errno
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from edgesim.base.paths import own_file, system_errors


def sync(paths: Sequence[Path]) -> None:
    """Write the content of files through to the disk; raises OSError.

    All at the same time: a journal takes about as long for several files as for one.
    """
    with ThreadPoolExecutor(max(1, len(paths))) as pool:
        list(pool.map(lambda path: _sync(path, os.O_RDWR), paths))


def sync_names(folder: Path) -> None:
    """Write the names of a folder's files through to the disk, after renames, where its file system can do that.

    Raises OSError.
    """
    try:
        _sync(folder, os.O_RDONLY)
    except OSError as error:
        # Some file systems cannot sync folders, and a folder that cannot be read cannot be opened for it.
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EACCES):
            raise


@contextmanager
def in_place_of(path: Path, on_disk: bool = False) -> Iterator[Path]:
    """Write a file under another name within this context, which then replaces ``path``: it is never there in part.

    With ``on_disk`` this holds after a power cut too, and all files renamed in its folder before are on the disk under
    their names, where `sync_names` can do that. An error removes the new file, and leaves the old one as it was.
    """
    part = own_file(path.with_name(f"{path.name}.part"))
    try:
        yield part
        if on_disk:
            _sync(part, os.O_RDWR)
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    if on_disk:
        sync_names(path.parent)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """As `in_place_of`, in a folder that is made where it is missing; raises `EdgesimError` that names the file."""
    with system_errors(f"{path}: cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with in_place_of(path) as part:
            yield part


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
