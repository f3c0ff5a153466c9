"""Names of files and folders that users give: which of them no system can have, told before anything is done."""

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


def _refused(text: str, where: str, expected: str, why: str = "") -> EdgesimError:
    shown = text if len(text) <= 60 else f"{text[:40]}...{text[-15:]}"
    place = f"{where}: " if where else ""
    return EdgesimError(f"{place}expected {expected} (got {shown!r}, {len(text)} characters{why})")
