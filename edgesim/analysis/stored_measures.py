"""Measures of a study's runs, computed once for each run and stored in the study's folder.

``measures.json`` holds, by the name of a run's folder, the measures and a digest of them and of all that they were
computed from (its files, the target, the code that analyses). It may be deleted: it is derived.
"""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from edgesim.analysis.measures import Measures, measure
from edgesim.analysis.products import digest_of_files
from edgesim.analysis.runs import RunFolder
from edgesim.base.errors import EdgesimError
from edgesim.base.text_file import read_json
from edgesim.folder.records import write_whole


class StoredMeasures:
    """Stored measures of one study, read when the object is created, written by `keep`; what is missing is computed."""

    def __init__(self, study_folder: Path, target: float | None) -> None:
        self._path = study_folder / "measures.json"
        self._target = target
        self._known: dict[str, Any] = {}
        with suppress(EdgesimError):
            self._known = read_json(self._path)
        self._is_new = False

    def of(self, run: RunFolder) -> Measures:
        """All measures of a run by name; raises as `edgesim.analysis.measures.measure`."""
        sources, known = digest_of_files(run.folder, self._target), self._known.get(run.folder.name)
        known = known if isinstance(known, dict) else {}
        stored = known.get("measures")
        if isinstance(stored, dict) and known.get("digest") == _digest(sources, stored):
            return dict(stored)
        measures = measure(run, self._target)
        self._known[run.folder.name] = {"digest": _digest(sources, measures), "measures": measures}
        self._is_new = True
        return measures

    def prepare(self, folder: Path) -> None:
        """Compute the measures of a run that has just finished; an error is left for `of` to raise.

        Other runs go on meanwhile: a file that cannot be read at this moment does not end them.
        """
        with suppress(EdgesimError, OSError):
            self.of(RunFolder(folder, {}, 0))

    def keep(self) -> None:
        """Write new measures; a folder that cannot be written to stays as it is."""
        if self._is_new:
            with suppress(OSError):
                write_whole(self._path, json.dumps(self._known) + "\n")
            self._is_new = False


def _digest(sources: str, measures: Measures) -> str:
    return hashlib.sha256(f"{sources} {json.dumps(measures)}".encode()).hexdigest()
