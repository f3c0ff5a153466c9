"""What lies in a folder: a run or a study."""

from pathlib import Path

from edgesim.analysis.runs import is_study
from edgesim.api.run import Run, of_folder
from edgesim.api.study import StudyResult


def open(folder: str | Path) -> Run | StudyResult:
    """The run or the study of a folder; raises `EdgesimError` if it is neither."""
    path = Path(folder)
    return StudyResult(path) if is_study(path) else of_folder(path)
