"""Paths that users give and folders of strangers: names that no system can have, and links that lead elsewhere."""

import errno
import os
import unicodedata
from pathlib import Path

from edgesim.errors import EdgesimError


def check_path(path: str | Path, where: str = "") -> None:
    """Raises `EdgesimError` for a path that the system cannot have, or that no line of text can name.

    ``where`` is the key or the option that gives it. Whether anything is there is another question.
    """
    text = str(path)
    # Control characters (a NUL ends a path, a line break a message) and bytes that are no text.
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise _refused(text, where, "a path of printable text")
    try:
        os.lstat(os.path.expanduser(text) or ".")
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise _refused(text, where, "a path that the system can have", f": {error.strerror}") from None


def own_file(path: Path) -> Path:
    """The path itself, at which no link is left: what is written there changes no file elsewhere."""
    if path.is_symlink():
        path.unlink()
    return path


def refuse_link(folder: Path) -> None:
    """Raises `EdgesimError` for a folder, of those that are written to, that is a link to another."""
    if folder.is_symlink():
        raise EdgesimError(f"{folder}: expected a folder of its own (it is a link to {os.readlink(folder)}); remove it")


def _refused(text: str, where: str, expected: str, why: str = "") -> EdgesimError:
    shown = text if len(text) <= 60 else f"{text[:40]}...{text[-15:]}"
    place = f"{where}: " if where else ""
    return EdgesimError(f"{place}expected {expected} (got {shown!r}, {len(text)} characters{why})", where)
