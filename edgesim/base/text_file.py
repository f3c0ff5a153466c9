"""Text files, TOML and JSON that users and runs wrote: what cannot be read is one line that names the file."""

import json
import tomllib
from pathlib import Path
from typing import Any

from edgesim.base.errors import EdgesimError

_MOST_CHARACTERS = 64 << 20
_DEEPEST, _MOST_BITS = 50, 64


def read_text(path: Path, missing: str = "") -> str:
    """The text of a file in UTF-8, with or without a byte-order mark.

    Raises `EdgesimError`, with ``missing`` as its message if there is no such file.
    """
    try:
        if path.is_fifo() and not path.absolute().is_relative_to("/dev"):
            # To open it would wait for a writer; pipes of the shell, which have one, lie in /dev.
            raise EdgesimError(f"{path}: is a pipe; expected a file")
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MOST_CHARACTERS + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise EdgesimError(missing or f"{path}: no such file") from None
    except IsADirectoryError:
        raise EdgesimError(f"{path}: is a folder; expected a file") from None
    except OSError as error:
        raise EdgesimError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise EdgesimError(f"{path}: expected text in UTF-8") from None
    if len(text) > _MOST_CHARACTERS:
        raise EdgesimError(f"{path}: expected a text of at most {_MOST_CHARACTERS:,} characters")
    return text


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; raises `tomllib.TOMLDecodeError`, and ValueError for numbers and nesting of no use here."""
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise ValueError("values lie too deep in one another") from None
    left = [(values, 0)]
    while left:
        value, depth = left.pop()
        if depth > _DEEPEST:
            raise ValueError("values lie too deep in one another")
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise ValueError(f"a number of more than {_MOST_BITS} bits")
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left += [(child, depth + 1) for child in inner]
    return values


def read_toml(path: Path, missing: str = "") -> dict[str, Any]:
    """Parse a TOML file; raises `EdgesimError` that names the file and the line, or as `read_text`."""
    try:
        return parse_toml(read_text(path, missing))
    except ValueError as error:
        raise EdgesimError(f"{path}: not valid TOML: {error}") from None


def read_json(path: Path, missing: str = "") -> dict[str, Any]:
    """Parse a file of one JSON object; raises `EdgesimError` that names the file and the line, or as `read_text`."""
    try:
        value = json.loads(read_text(path, missing))
    except (ValueError, RecursionError) as error:
        # There is no place where a number is too long, or where too many objects lie in one another.
        place = f" (at line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise EdgesimError(f"{path}: not valid JSON{place}") from None
    if not isinstance(value, dict):
        raise EdgesimError(f"{path}: expected a JSON object")
    return value
