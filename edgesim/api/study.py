"""Studies: grids of runs in several processes, and their results."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from typing_extensions import override

from edgesim.analysis import compare as comparing
from edgesim.analysis.runs import StudyFolder as Plan
from edgesim.analysis.runs import has_runs, read_study
from edgesim.analysis.summary import current_summary
from edgesim.api.configs import Config, Overrides, folder_for, paths_of, values_of, with_set
from edgesim.api.figures import draw
from edgesim.api.run import Run, as_html, as_line, figure_of, of_folder, tell_new_defaults, tell_user_codes
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import as_path
from edgesim.plots.formats import USUAL
from edgesim.screen.console import PlainConsole
from edgesim.studies import running
from edgesim.studies.executor import Executor
from edgesim.studies.ledger import read_ledger
from edgesim.studies.plan import Axes, Knob, PlannedRun, Study, check_labels, completed
from edgesim.studies.study_table import TABLE, StudyTable, runs_of, study_table
from edgesim.tables.show import print_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from edgesim.plots.album import Pictures


class StudyResult:
    """A study's folder and the results of its runs; tables are read when they are first used.

    Raises `EdgesimError` for a folder that is not a study's.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = as_path(folder, "folder")
        self.plan: Plan = read_study(self.folder)
        """Name, target, reference, and all runs with how they ended."""

    @cached_property
    def runs(self) -> dict[str, Run]:
        """The finished runs by name."""
        return {run.folder.name: Run(run.folder, run.knobs, run.seed) for run in self.plan.finished}

    @property
    def unfinished(self) -> dict[str, str]:
        """Status of every other run, by name, in the words of `edgesim study status`; read anew each time."""
        return {name: state.status for name, state in read_ledger(self.folder).items() if state.status != "finished"}

    def table(self) -> pd.DataFrame:
        """The summary: a row for each combination of knobs, with means over seeds and 95 % intervals."""
        return current_summary(self.folder)

    def compare(
        self,
        metric: str | Sequence[str],
        by: str = "policy",
        reference: str | None = None,
        within: Sequence[str] = (),
        target: float | None = None,
        detect: float | str | None = None,
    ) -> comparing.Compared:
        """Paired tests over seeds of whether one value of a knob beats another; arguments as of `compare`."""
        return compare([self.folder], metric, by, reference, within, target, detect)

    def show(self, whole: bool = False) -> None:
        """Print the output of `edgesim show`: the summary as tables, and the differences between policies.

        With further measures of how accuracy went if ``whole``.
        """
        print_study(self.folder, PlainConsole(), whole)

    @property
    def figures(self) -> list[str]:
        """Names of the figures that the study supports."""
        return [*self._pictures()]

    def plot(self, name: str) -> "Figure":
        """Make one of `figures`; raises `EdgesimError`, with the names there are, for any other name."""
        return figure_of(self._pictures(), name, self.folder)

    def draw(self, out: str | Path | None = None, format: str = USUAL) -> list[Path]:
        """Save all figures as png, svg or pdf, into ``plots`` of the folder by default; returns the files."""
        return draw([self.folder], out, format=format)

    def _pictures(self) -> "Pictures":
        from edgesim.plots.gallery import of_study

        if not self.plan.finished:
            raise EdgesimError(f"{self.folder}: no run of the study is finished; run the study first")
        return of_study(self.plan)

    def _facts(self) -> dict[str, str]:
        finished, planned = len(self.plan.finished), len(self.plan.planned)
        return {"folder": str(self.folder), "runs": f"{finished} of {planned} finished"}

    @override
    def __repr__(self) -> str:
        return as_line("StudyResult", self._facts())

    def _repr_html_(self) -> str:
        table = self.table()._repr_html_() if self.plan.finished else ""
        return as_html(self._facts(), str(table))


def compare(
    folders: str | Path | Sequence[str | Path],
    metric: str | Sequence[str],
    by: str = "policy",
    reference: str | None = None,
    within: Sequence[str] = (),
    target: float | None = None,
    detect: float | str | None = None,
) -> comparing.Compared:
    """Whether one value of a knob really beats another in run folders and studies: paired tests over seeds.

    ``metric`` is a measure, such as ``rounds_to_target``, or several; ``reference`` the value that all others are
    compared with (by policy the study's, else every two are compared); ``within`` are knobs at each value of which is
    compared separately; ``target`` is the accuracy of what is to a target, the study's when absent; ``detect`` is the
    difference that seeds are counted for, the margin of equivalence when absent. The result's ``table`` has a row for
    each comparison. Raises `EdgesimError` for runs that are not pairs.
    """
    metrics = [metric] if isinstance(metric, str) else list(dict.fromkeys(metric))
    return comparing.compare(paths_of(folders), metrics, by, reference, within, target, detect)


def study(
    base: Config | Sequence[PlannedRun],
    axes: Axes | None = None,
    seeds: int | Sequence[int] | None = None,
    out: str | Path | None = None,
    *,
    name: str | None = None,
    target: float | None = None,
    reference: str | None = None,
    set: Overrides | None = None,
    labels: Mapping[str, Knob] | None = None,
    jobs: int | None = None,
    fresh: bool | Collection[str] = False,
    user_code: bool = True,
    quiet: bool = False,
    executor: Executor | None = None,
    check: bool = False,
) -> StudyResult:
    """Run every combination of the ``axes`` (values by key, such as ``{"round.tmax_s": [0.8, 1.2]}``) with every seed.

    ``base`` is a config as for `edgesim.run`, which may have a table ``[study]``, or runs planned by `edgesim.grid`,
    which have axes, seeds and labels already. ``seeds`` is a number of seeds or a list of them (3 when absent),
    ``target`` the accuracy that runs race to, ``reference`` the policy that the others are compared with (random, or
    the first); given here, they replace those of ``[study]``, axes key by key. ``labels`` are further knobs, the same
    in all runs. The folder is ``out``, or ``runs/<name>``; without both the name of the file or, for other configs,
    ``study-`` and eight digits of a hash of all runs. Finished runs are reused while nothing has changed, unless
    ``fresh``, which may also name some of them; ``jobs`` runs go at a time, one per core when absent, as processes of
    this machine or on the ``executor`` given, such as ``edgesim.Ray("node1:6379")``. ``user_code`` is whether configs
    may name code outside edgesim. Scripts call this below ``if __name__ == "__main__":``, since the processes read them
    again. ``check`` checks every finished run, as `edgesim check` does. Raises `EdgesimError` for bad input, if no run
    finishes, and if a checked run has a fault.
    """
    console = PlainConsole(quiet=quiet)
    if isinstance(base, Sequence) and not isinstance(base, str):
        if axes is not None or set is not None or labels is not None:
            raise EdgesimError("study: planned runs have axes, set and labels already; give these to edgesim.grid")
        runs, named_by = list(base), "reference"
    else:
        values, where = values_of(base)
        if TABLE in values:
            table = study_table(values, where, seeds)
        else:
            table = StudyTable(seeds=3)
            if seeds is not None:
                table.seeds = seeds if isinstance(seeds, int) else list(seeds)
        table.axes |= axes or {}
        named_by = "reference" if reference else f"{where}: study.reference"
        target, reference = target or table.target, reference or table.reference
        typed = [] if set is None or isinstance(set, Mapping) else set
        if isinstance(set, Mapping):
            if varied := [key for key in set if key == "seed" or key in table.axes]:
                raise EdgesimError(f"set: the study itself varies {varied[0]}", varied[0])
            values = with_set(values, set)
        is_file = isinstance(base, str | Path)
        with _prefixed(where) if is_file else nullcontext():
            runs = runs_of(values, table, typed, labels)
            tell_user_codes((run.config for run in runs), "config", not user_code, console if is_file else None)
            tell_new_defaults((run.config for run in runs), console)
            runs = completed(runs)
    check_labels(runs)
    source = f"{name}.toml" if name is not None else base
    folder = folder_for(out, source, "study", (run.config for run in runs))
    compared = [str(run.knobs.get("policy", run.config.selection.policy)) for run in runs]
    if reference and reference not in compared:
        policies = ", ".join(dict.fromkeys(compared))
        raise EdgesimError(f"{named_by}: expected one of the study's policies, {policies} (got {reference!r})")
    chosen = reference or ("random" if "random" in compared or len({*compared}) < 2 else compared[0])
    planned = Study(name or folder.name, runs, target, chosen)
    running.run_study(planned, folder, jobs, console, fresh, executor=executor, check=check)
    return StudyResult(folder)


@contextmanager
def _prefixed(where: str) -> Iterator[None]:
    """Context in which errors name the file that they are about, unless they are about what was set beside it."""
    try:
        yield
    except EdgesimError as error:
        if str(error).startswith("set "):
            raise
        raise type(error)(f"{where}: {error}", *error.fields) from None


def failures(folder: Path) -> list[str]:
    """Each run of a study that did not finish, and why."""
    states = {name: state for name, state in read_ledger(folder).items() if state.status != "finished"}
    return [f"{name}: {state.reason or state.status}" for name, state in states.items()]


def open(folder: str | Path) -> Run | StudyResult:
    """The run or the study of a folder; raises `EdgesimError` if it is neither."""
    path = as_path(folder, "folder")
    return StudyResult(path) if has_runs(path) else of_folder(path)
