"""Opening a folder as a run or a study."""

from pathlib import Path

from edgesim.analysis.runs import is_study
from edgesim.api.run import Run, of_folder
from edgesim.api.study import StudyResult
from edgesim.base.paths import as_path


def open(folder: str | Path) -> Run | StudyResult:
    """The run or the study of a folder; raises `EdgesimError` if it is neither."""
    path = as_path(folder, "folder")
    return StudyResult(path) if is_study(path) else of_folder(path)
