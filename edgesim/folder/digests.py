"""Digests of a run's config, tables and model: ``run.json`` keeps one for each file, and readers check them.

The files of unfinished runs have none: whether these are what was written cannot be said.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.base.file_digest import file_digest
from edgesim.base.text_file import read_json
from edgesim.folder.run_schema import SCHEMAS

KEY = "digests"
"""Key of ``run.json`` for the SHA-256 digests of config and results, in hexadecimal digits, by file name."""

DAMAGED = "is damaged: its bytes are not those that the run wrote"

_FILES = (
    "config.toml",
    *(f"{table}.parquet" for table in SCHEMAS),
    "absences.parquet",
    "ways.parquet",
    "model.safetensors",
)


WHAT_WAS_DONE = ("activities.parquet", "model.safetensors")
"""Files that two runs have in common if their devices did the same and learnt the same."""


def digests_of(folder: Path) -> dict[str, str]:
    """SHA-256 of the config, each table and the model in a run folder, by the file's name, in order."""
    return {name: file_digest(folder / name).hex() for name in sorted(_FILES) if (folder / name).is_file()}


def damaged(folder: Path, run: Mapping[str, Any]) -> list[str]:
    """Names of the files in a run folder whose digest is not that of its ``run.json`` (``run``).

    Missing files are not among them.
    """
    noted = {name: folder / Path(name).name for name in run.get(KEY, {})}
    return [name for name, path in noted.items() if path.is_file() and file_digest(path).hex() != run[KEY][name]]


def expected_digest(path: Path) -> str | None:
    """The digest that the ``run.json`` beside a file has of it; None if it has none."""
    run: dict[str, Any] = {}
    with suppress(EdgesimError):
        run = read_json(path.parent / "run.json")
    by_name = run.get(KEY)
    return by_name.get(path.name) if isinstance(by_name, dict) else None


def check_file(path: Path) -> None:
    """Raise `EdgesimError` if a config, table or model differs from its digest in the ``run.json`` beside it."""
    digest = expected_digest(path)
    if digest is not None and file_digest(path).hex() != digest:
        remedy = "remove the folder" if path.name == "config.toml" else "run it again"
        raise EdgesimError(f"{path}: {DAMAGED}; restore the file, or {remedy}")
