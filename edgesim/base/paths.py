"""Checks of paths that users give and of folders made by others: impossible names, and links that lead elsewhere."""

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edgesim.base.errors import EdgesimError


def check_path(path: str | Path, where: str = "") -> None:
    """Raises `EdgesimError` for a path that the file system cannot have, or that cannot be printed on one line.

    ``where`` is the key or the option that gives the path. The path need not exist.
    """
    text = str(path)
    # Control characters (a NUL ends a path, a line break a message) and lone surrogates (bytes that are not text).
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise _refused(text, where, "a path of printable text")
    try:
        os.lstat(os.path.expanduser(text) or ".")
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise _refused(text, where, "a path that the system can have", f": {error.strerror}") from None


def as_path(path: object, argument: str) -> Path:
    """Path that an argument gives; raises `EdgesimError` that names the argument if it is none, or as `check_path`."""
    if not isinstance(path, str | os.PathLike):
        raise EdgesimError(f"{argument}: expected a path (got {type(path).__name__})", argument)
    checked = Path(path)
    check_path(checked, argument)
    return checked


@contextmanager
def system_errors(failure: str, remedy: str = "") -> Iterator[None]:
    """Turn an OSError within this context into an `EdgesimError` of the failure, the system's reason and a remedy."""
    try:
        yield
    except OSError as error:
        # Arrow puts a message of its own before that of the system.
        reason = re.sub(r".*\[errno \d+\] ", "", error.strerror or str(error))
        raise EdgesimError(f"{failure}: {reason}{remedy}") from None


_DEEPEST = 5
"""Folders between the root of a data set and its files: no layout has more."""


def files_below(root: Path) -> Iterator[str]:
    """Paths below a folder, with slashes, of all files that are not hidden: each folder's own first, in order.

    Links are followed. Raises `EdgesimError` for folders that lie deeper than data sets go: links to a folder above
    make such folders without end.
    """
    for folder, inner, files in os.walk(root, followlinks=True):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        below = Path(folder).relative_to(root)
        if len(below.parts) > _DEEPEST:
            raise EdgesimError(
                f"{folder}: lies {len(below.parts)} folders below {root}; expected at most {_DEEPEST}, and no link to "
                "a folder above"
            )
        yield from ((below / name).as_posix() for name in sorted(files) if not name.startswith("."))


def own_file(path: Path) -> Path:
    """The path, after removing a symbolic link or a named pipe there.

    Writing to the one would change a file elsewhere, and opening the other would wait for a reader.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or stat.S_ISFIFO(mode):
            path.unlink()
    return path


def refuse_link(folder: Path) -> None:
    """Raises `EdgesimError` if a folder that is to be written to is a link to another one."""
    if folder.is_symlink():
        raise _foreign(folder, "a folder")


def own_folder(folder: Path) -> None:
    """Make a folder below one of edgesim's; raises `EdgesimError` if it is a link to another one, and OSError."""
    refuse_link(folder)
    folder.mkdir(exist_ok=True)


def refuse_foreign(folder: Path) -> None:
    """Raises `EdgesimError` for anything below a folder but files and folders, whatever its name.

    What is then written there, and by whichever name, stays there: a link leads elsewhere, and a pipe or a device takes
    what a file should have. The folder itself may be a link. What vanishes meanwhile is no fault.
    """
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            # Not `entry.is_file`, which is also false for what is gone.
            with suppress(FileNotFoundError):
                mode = os.lstat(entry.path).st_mode
                if stat.S_ISDIR(mode):
                    refuse_foreign(folder / entry.name)
                elif not stat.S_ISREG(mode):
                    raise _foreign(folder / entry.name, "a file or a folder")


def _foreign(path: Path, expected: str) -> EdgesimError:
    if path.is_symlink():
        return EdgesimError(f"{path}: expected {expected} (got a link to {os.readlink(path)}); remove the link")
    return EdgesimError(f"{path}: expected {expected} (got a pipe, a socket or a device); remove it")


def _refused(text: str, where: str, expected: str, why: str = "") -> EdgesimError:
    place = f"{where}: " if where else ""
    return EdgesimError(f"{place}expected {expected} (got {text!r}, {len(text)} characters{why})", where)
