"""Notes on which files were made from which results, so that current files are not made again.

A folder's ``made.json`` holds, for each product (a table, a figure, the notes) by its name, a digest of everything it
was made from (result files, code) and the hash of every file it consists of. A product is current while the digest and
the hashes still match.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from edgesim.analysis.runs import RunFolder, StudyFolder
from edgesim.base.errors import EdgesimError
from edgesim.base.file_digest import file_digest
from edgesim.base.lease import is_of_lease
from edgesim.base.paths import system_errors
from edgesim.base.text_file import read_json
from edgesim.folder import records
from edgesim.folder.records import write_whole

_PACKAGE = Path(records.__file__).parents[1]
_SOURCES = ("analysis/*.py", "plots/*.py", "folder/records.py", "folder/run_schema.py", "folder/work_kinds.py")
_LIBRARIES = ("matplotlib", "numpy", "pandas", "pyarrow", "scipy", "statsmodels")
_READ = (".parquet", ".arrow", ".toml", ".json")
"""Endings of the files of a run folder that analysis reads; it does not read trained models."""


class Products:
    """The notes of one folder, read when the object is created and written whenever a note is added.

    In a folder without readable notes nothing is current. In a folder that cannot be written to the old notes stay.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "made.json"
        self._notes: dict[str, Any] = {}
        with suppress(EdgesimError):
            self._notes = read_json(self._path)

    def current(self, name: str, digest: str) -> list[str] | None:
        """Lines of text stored with a current product; None if the product has to be made (again)."""
        note = self._notes.get(name)
        if not isinstance(note, dict) or note.get("digest") != digest:
            return None
        with suppress(OSError, AttributeError, TypeError):
            if all(file_digest(self._folder / file).hex() == content for file, content in note["files"].items()):
                return list(note.get("lines", []))
        return None

    def note(self, name: str, digest: str, files: Sequence[Path], lines: Sequence[str] = ()) -> None:
        """Note a product: its files, in this folder or below, and lines of text to store with it."""
        contents = {path.relative_to(self._folder).as_posix(): file_digest(path).hex() for path in files}
        self._notes[name] = {"digest": digest, "files": contents} | ({"lines": list(lines)} if lines else {})
        with suppress(OSError):
            write_whole(self._path, json.dumps(self._notes, indent=1) + "\n")


def digest_of(runs: Iterable[RunFolder], *facts: object) -> str:
    """Digest of runs in their order (knobs, seeds, files), of further facts, and of the code that analyses them."""
    digest = hashlib.sha256(_code_digest().encode())
    digest.update(repr(facts).encode())
    for run in runs:
        digest.update(repr((run.folder.name, sorted(run.knobs.items()), run.seed)).encode())
        digest.update(_folder_digest(run.folder).encode())
    return digest.hexdigest()


def digest_of_study(study: StudyFolder, *facts: object) -> str:
    """Digest of all that a study's analysis reads: its finished runs, and the plan of all its runs."""
    plan = [(entry.run.folder.name, sorted(entry.run.knobs.items()), entry.run.seed, entry.status)
            for entry in study.planned]  # fmt: skip
    return digest_of(study.finished, study.name, study.target, study.reference, plan, *facts)


def digest_of_files(folder: Path, *facts: object) -> str:
    """Digest of the files of one run, of further facts, and of the code that analyses it."""
    return hashlib.sha256(f"{_code_digest()} {facts!r} {_folder_digest(folder)}".encode()).hexdigest()


def _folder_digest(folder: Path) -> str:
    if not folder.is_dir():
        raise EdgesimError(f"{folder}: is not there; run the study again")
    digest = hashlib.sha256()
    for name in sorted(name for name in os.listdir(folder) if name.endswith(_READ)):
        # Wall times, which differ between otherwise equal runs, and leases are in no figure or table of a study.
        if not name.startswith("timing.") and not is_of_lease(name):
            with system_errors(f"{folder / name}: cannot be read"):
                digest.update(f"{name} {file_digest(folder / name).hex()}\n".encode())
    return digest.hexdigest()


@cache
def _code_digest() -> str:
    """Hash of the sources that analyse and draw, and of the versions of the libraries that they use."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _SOURCES for path in _PACKAGE.glob(pattern)):
        digest.update(f"{path.relative_to(_PACKAGE)} {file_digest(path).hex()}\n".encode())
    for name in _LIBRARIES:
        digest.update(f"{name} {metadata.version(name)}\n".encode())
    return digest.hexdigest()
