"""What figures and tables need of runs, refused in one line where it is missing."""

from collections.abc import Collection, Sequence

import pandas as pd

from edgesim.analysis.metrics import evaluations
from edgesim.analysis.runs import RunFolder
from edgesim.base.errors import EdgesimError


def need_runs(runs: Collection[RunFolder]) -> None:
    """Raise `EdgesimError` where there is no run."""
    if not runs:
        raise EdgesimError("there is no finished run; run the study first")


def need_tests(runs: Collection[RunFolder]) -> None:
    """Raise `EdgesimError` for no runs, and for the first one whose model was never tested."""
    need_runs(runs)
    for run in runs:
        if evaluations(run.rounds).empty:
            raise EdgesimError(f"{run.folder}: no model was tested; expected a run that trains and tests")


def need_knobs(runs: Collection[RunFolder], *names: str) -> None:
    """Raise `EdgesimError` for no runs, and for the first one that lacks a knob."""
    need_runs(runs)
    for run in runs:
        if lacking := [name for name in names if name not in run.knobs]:
            known = f"knobs: {', '.join(run.knobs)}" if run.knobs else "it has no knobs"
            raise EdgesimError(f"{run.folder}: has no knob {lacking[0]!r}; {known}")


def need_columns(summary: pd.DataFrame, names: Sequence[str]) -> None:
    """Raise `EdgesimError` for a summary without rows, and for the first column that it lacks."""
    if summary.empty:
        raise EdgesimError("the summary has no row; run the study first")
    if lacking := [name for name in names if name not in summary]:
        raise EdgesimError(f"the summary has no column {lacking[0]!r}; columns: {', '.join(map(str, summary.columns))}")
