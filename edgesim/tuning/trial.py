"""A trial of a tuning: a cell of the knobs, run over the seeds as part of a study."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rich.console import Console

from edgesim.analysis.runs import RunFolder
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import Taken, leased
from edgesim.folder.checkpoints import saved_round
from edgesim.folder.records import note_pruned, read_run
from edgesim.folder.state import state_of
from edgesim.screen.progress import ROUNDS, Display, Extent
from edgesim.simulation import composition as simulation
from edgesim.simulation.run_progress import extent
from edgesim.studies.dispatch import Dispatch
from edgesim.studies.executor import Ending
from edgesim.studies.plan import Knob as Value
from edgesim.studies.plan import PlannedRun, Study
from edgesim.studies.plan_file import grow
from edgesim.studies.pool import Crew, ProcessPool
from edgesim.tuning.objectives import Seen, TuningObjective, seen

RUNGS = (1 / 8, 1 / 4, 1 / 2)
"""Parts of a run after which its trial may be pruned."""


@dataclass(frozen=True)
class Cell:
    """A combination of the knobs' values that the optimiser proposed, and its runs."""

    number: int
    """Optuna's number of the trial."""
    values: Mapping[str, Value]
    """Values of the knobs by key of the config."""
    runs: Sequence[PlannedRun]
    """One run for each seed."""


@dataclass(frozen=True)
class Outcome:
    """End of a trial: its value, the measures of its runs, and the reason."""

    status: Literal["complete", "pruned", "failed"]
    seen: Seen | None = None
    reason: str = ""


Prune = Callable[[Cell, int, Seen], str]
"""Reason to prune a cell after a rung, counted from 0, given what its runs have measured; empty: it continues."""


@dataclass(frozen=True)
class Trials:
    """Runs trials in a study's folder."""

    out: Path
    study: Study
    """Its name, target and reference; without runs."""
    objectives: Sequence[TuningObjective]
    jobs: int
    console: Console
    crew: Crew
    noted: set[str] = field(default_factory=lambda: {"resume"})
    """Subjects of notes that are not printed again; ``resume`` is one, since runs resume after each rung."""
    anew: set[str] = field(default_factory=set)
    """Folders of runs to begin from the start, even if finished; a folder leaves the set when its run begins."""

    def __call__(self, cells: Sequence[Cell], prune: Prune | None) -> dict[int, Outcome]:
        """Run the trials of cells at the same time, and add their runs to the plan; outcomes by Optuna's number.

        Raises `EdgesimError` if the folder holds another study, and KeyboardInterrupt after the runs are saved.
        """
        grow(self._of([run for cell in cells for run in cell.runs]), self.out)
        title = "trial" if len(cells) == 1 else f"{len(cells)} trials"
        outcomes: dict[int, Outcome] = {}
        # A cell whose runs are finished is not pruned, which would save nothing.
        over = [cell for cell in cells if self._has_run(cell)]
        left = [cell for cell in cells if cell not in over]
        for rung, part in enumerate(RUNGS if prune else ()):
            rounds = {run.folder: round(part * run.config.expected_rounds) for cell in left for run in cell.runs}
            due = [run for cell in left for run in cell.runs if self._is_due(run, rounds)]
            endings = self._run(title, due, rounds)
            for cell in left:
                if (failure := _failure(cell, endings)) is not None:
                    outcomes[cell.number] = failure
                    continue
                so_far = self._seen(cell)
                if so_far is not None and prune is not None and (reason := prune(cell, rung, so_far)):
                    self._give_up(cell, reason)
                    outcomes[cell.number] = Outcome("pruned", so_far, reason)
            left = [cell for cell in left if cell.number not in outcomes]
        left += over
        endings = self._run(title, [run for cell in left for run in cell.runs], {})
        return outcomes | {cell.number: self._outcome(cell, endings) for cell in left}

    def _of(self, runs: Sequence[PlannedRun]) -> Study:
        return Study(self.study.name, runs, self.study.target, self.study.reference)

    def _has_run(self, cell: Cell) -> bool:
        """Whether all runs of a cell are finished, and none is to begin from the start."""
        return all(
            run.folder not in self.anew and simulation.why_run(self.out / run.folder, run.config) is None
            for run in cell.runs
        )

    def _is_due(self, run: PlannedRun, rounds: Mapping[str, int]) -> bool:
        """Whether a run has not reached the rung's round yet."""
        folder, round = self.out / run.folder, rounds[run.folder]
        if round <= 0 or run.folder in self.anew:
            return round > 0
        return state_of(folder).status != "finished" and saved_round(folder) < round

    def _run(self, title: str, runs: Sequence[PlannedRun], until: Mapping[str, int]) -> dict[str, Ending]:
        if not runs:
            return {}
        extents = {
            run.folder: Extent(until[run.folder], ROUNDS) if until.get(run.folder) else extent(run.config)
            for run in runs
        }
        anew = self.anew & extents.keys()
        self.anew.difference_update(anew)
        with Display(self.console, title, extents, self.noted) as display:
            dispatch = Dispatch(self._of(runs), self.out, anew, ProcessPool(self.crew), self.jobs, display, until)
            for run in runs:
                if simulation.why_run(self.out / run.folder, run.config, run.folder in anew) is None:
                    dispatch.end(run.folder, Ending("finished", "finished before", reused=True))
            dispatch.run_all()
        return dispatch.endings

    def _seen(self, cell: Cell) -> Seen | None:
        """Objectives of a cell's runs so far; None if a run has no value of one yet."""
        try:
            return seen([_run_of(self.out, run) for run in cell.runs], self.objectives, self.study.target)
        except EdgesimError:
            return None

    def _outcome(self, cell: Cell, endings: Mapping[str, Ending]) -> Outcome:
        if (failure := _failure(cell, endings)) is not None:
            return failure
        try:
            runs = [_run_of(self.out, run) for run in cell.runs]
            return Outcome("complete", seen(runs, self.objectives, self.study.target))
        except EdgesimError as error:
            return Outcome("failed", reason=str(error))

    def _give_up(self, cell: Cell, reason: str) -> None:
        for run in cell.runs:
            folder = self.out / run.folder
            try:
                with leased(folder):
                    if read_run(folder)["status"] == "interrupted":
                        note_pruned(folder, f"pruned behind round {saved_round(folder)}: {reason}")
            except Taken:
                # Another process resumes it, for a trial of its own.
                continue


def _failure(cell: Cell, endings: Mapping[str, Ending]) -> Outcome | None:
    """The outcome of a trial one of whose runs failed; None if none did."""
    for run in cell.runs:
        if run.folder in endings and endings[run.folder].status == "failed":
            return Outcome("failed", reason=f"{run.folder}: {endings[run.folder].reason}")
    return None


def _run_of(out: Path, run: PlannedRun) -> RunFolder:
    return RunFolder(out / run.folder, run.knobs, run.seed)
