"""Text files, TOML and JSON that users and runs wrote: what cannot be read is one line that names the file."""

import json
import tomllib
from pathlib import Path
from typing import Any

from edgesim.errors import EdgesimError


def read_text(path: Path, missing: str = "") -> str:
    """The text of a file in UTF-8, with or without a byte-order mark.

    Raises `EdgesimError`, with ``missing`` as its message if there is no such file.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        raise EdgesimError(missing or f"{path}: no such file") from None
    except OSError as error:
        raise EdgesimError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise EdgesimError(f"{path}: expected text in UTF-8") from None


def read_toml(path: Path, missing: str = "") -> dict[str, Any]:
    """Parse a TOML file; raises `EdgesimError` that names the file and the line, or as `read_text`."""
    try:
        return tomllib.loads(read_text(path, missing))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
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
