"""Digests of the results of a run: ``run.json`` keeps one for each table and for the model, and readers check them.

The results of older runs, and of runs that go on, have none: whether these are what was written cannot be said.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.base.file_digest import file_digest
from edgesim.base.text_file import read_json

KEY = "digests"
"""Of ``run.json``: SHA-256 in hexadecimal digits, by the name of the file."""

DAMAGED = "is damaged: its bytes are not those that the run wrote"

_RESULTS = ("*.parquet", "model*.safetensors")


def result_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each table and model in a run folder, by the file's name, in order."""
    paths = sorted(path for pattern in _RESULTS for path in folder.glob(pattern))
    return {path.name: file_digest(path).hex() for path in paths}


def damaged(folder: Path, run: Mapping[str, Any]) -> list[str]:
    """Names of the results in a run folder that are not what its ``run.json`` (``run``) says of them.

    What is no longer there is not among them.
    """
    noted = {name: folder / Path(name).name for name in run.get(KEY, {})}
    return [name for name, path in noted.items() if path.is_file() and file_digest(path).hex() != run[KEY][name]]


def check_result(path: Path) -> None:
    """Raises `EdgesimError` if a table or a model is not what its run wrote, as the ``run.json`` beside it says."""
    run: dict[str, Any] = {}
    with suppress(EdgesimError):
        run = read_json(path.parent / "run.json")
    noted = run.get(KEY)
    digest = noted.get(path.name) if isinstance(noted, dict) else None
    if digest is not None and file_digest(path).hex() != digest:
        raise EdgesimError(f"{path}: {DAMAGED}; restore the file, or run it again")
