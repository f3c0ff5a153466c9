"""Single runs: simulate, resume and fork them, and read their results."""

import html
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from edgesim.analysis import runs as analysed
from edgesim.analysis.metrics import evaluations, start_accuracy, to_target
from edgesim.api.configs import Config, Overrides, changes_of, completed, configured, folder_for
from edgesim.api.figures import draw
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import as_path
from edgesim.base.plain_text import printable
from edgesim.base.processes import why_stopped_printed
from edgesim.base.registry import did_you_mean
from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.folder.records import read_config, read_run, read_table
from edgesim.folder.run_progress import RunProgress
from edgesim.folder.state import state_of
from edgesim.plots.formats import USUAL
from edgesim.screen.console import PlainConsole
from edgesim.screen.progress import ROUNDS, bar
from edgesim.simulation import composition as simulation
from edgesim.simulation import forking, named_code
from edgesim.simulation.complete import complete
from edgesim.simulation.run_progress import describe, extent
from edgesim.tables.show import print_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from edgesim.plots.album import Pictures


class Run(analysed.RunFolder):
    """A run's folder and its results; tables are read when they are first used.

    ``rounds``, ``activities``, ``updates``, ``devices``, ``stations``, ``metrics`` and ``timing`` are data frames,
    ``config`` is the complete config. Every property raises `EdgesimError` when the folder lacks what it reads.
    """

    @property
    def status(self) -> str:
        """``finished``, ``running``, ``stopped``, ``lost`` (its process is gone), ``failed`` or ``pruned``."""
        return state_of(self.folder).status

    @property
    def accuracy(self) -> float:
        """Accuracy of the last test; NaN where nothing was tested."""
        tested = evaluations(self.rounds)["test_accuracy"]
        return float(tested.iloc[-1]) if len(tested) else math.nan

    def seconds_to(self, target: float) -> float:
        """Simulated seconds until the first test at or above a target accuracy; infinite if there was none.

        0 if the start model is that good. Raises `EdgesimError` unless the target is above 0 and at most 1.
        """
        if not 0 < target <= 1:
            raise EdgesimError(f"target: expected an accuracy above 0 and at most 1 (got {target!r})")
        if self.tests.empty:
            return math.inf
        start = start_accuracy(self.metrics) or 0.0
        if start >= target:
            return 0.0
        result = to_target(self.tests, target, start)
        return result.t_s if result.reached else math.inf

    def show(self, whole: bool = False) -> None:
        """Print the output of `edgesim show`: how the run ended, its accuracy and totals; all there is if ``whole``."""
        print_run(self.folder, PlainConsole(), whole)

    @property
    def figures(self) -> list[str]:
        """Names of the figures that the run supports."""
        return [*self._pictures()]

    def plot(self, name: str, round: int | None = None) -> "Figure":
        """Make one of `figures`; ``round`` is that of the Gantt chart and of the band use.

        Raises `EdgesimError`, with the names there are, for any other name.
        """
        return figure_of(self._pictures(round), name, self.folder)

    def draw(self, out: str | Path | None = None, format: str = USUAL) -> list[Path]:
        """Save all figures as png, svg or pdf, into ``plots`` of the folder by default; returns the files."""
        return draw([self.folder], out, format=format)

    def _pictures(self, round: int | None = None) -> "Pictures":
        from edgesim.plots.gallery import of_runs

        return of_runs([self], round)

    def _facts(self) -> dict[str, str]:
        """Facts about the run as text, by name."""
        facts = {"folder": str(self.folder)}
        try:
            rounds = read_table(self.folder, "rounds")
            facts |= {"status": self.status, "rounds": f"{len(rounds)}"}
        except EdgesimError as error:
            return facts | {"unreadable": str(error)}
        if len(rounds):
            facts["simulated"] = f"{rounds['t_end_s'].iloc[-1]:,.1f} s"
            facts |= {} if math.isnan(self.accuracy) else {"accuracy": f"{self.accuracy:.4f}"}
        return facts

    @override
    def __repr__(self) -> str:
        return as_line("Run", self._facts())

    def _repr_html_(self) -> str:
        return as_html(self._facts())


def as_line(kind: str, facts: dict[str, str]) -> str:
    """Format facts as a line for terminals; control characters of texts are escaped."""
    parts = [f"{name} {printable(text, keep='')}" for name, text in facts.items()]
    return f"{kind}({', '.join(parts)})"


def as_html(facts: dict[str, str], table: str = "") -> str:
    """Format facts for notebooks as a table of two columns, above the HTML ``table``; texts are escaped."""
    rows = (
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(printable(text, keep=''))}</td></tr>"
        for name, text in facts.items()
    )
    # Notebooks take what stands between dollars for mathematics, but not in this class.
    return f'<div class="tex2jax_ignore mathjax_ignore"><table>{"".join(rows)}</table>{table}</div>'


def figure_of(pictures: "Pictures", name: str, folder: Path) -> "Figure":
    """Make the figure of a name; raises `EdgesimError` for an unknown one, with the names there are."""
    from edgesim.plots.gallery import NEEDS

    if name not in pictures:
        known = max((start for start in NEEDS if name.startswith(start)), key=len, default="")
        hint = f", which needs {NEEDS[known]};" if known else did_you_mean(name, pictures) or ";"
        raise EdgesimError(f"{folder}: has no figure {name!r}{hint} its figures are {', '.join(pictures)}")
    return pictures[name].make()


def of_folder(folder: Path) -> Run:
    """The run of a folder; raises `EdgesimError` if it is not a run's."""
    (run_folder,) = analysed.runs_of([folder])
    read_run(folder)
    return Run(run_folder.folder, run_folder.knobs, run_folder.seed)


@why_stopped_printed()
def run(
    config: Config,
    out: str | Path | None = None,
    set: Overrides | None = None,
    *,
    fresh: bool = False,
    quiet: bool = False,
    log: bool | None = None,
    user_code: bool = True,
    checkpoint_s: float = simulation.CHECKPOINT_S,
    on_round: Callable[[RunProgress], None] | None = None,
) -> Run:
    """Simulate one run, or resume it where it was stopped; a finished one is reused while nothing has changed.

    ``config`` is a nested mapping, the path of a TOML file or a `RunConfig`; ``set`` gives keys other values, such as
    ``{"round.tmax_s": 0.8}``. The run's folder is ``out``; without it ``runs/<name of the file>`` or, for other
    configs, ``runs/run-`` and eight digits of a hash of the whole config. ``fresh`` runs a finished run again.
    ``quiet`` prints no progress and no notes; ``log`` prints progress as lines, every 30 s, as it is done without a
    terminal. ``user_code=False`` refuses a config that names code outside edgesim. ``checkpoint_s`` is the least wall
    time between checkpoints. ``on_round`` is called at the end of each round with its number, the simulated time in
    seconds, the last test's accuracy, and the round's bits and joules; what it raises ends the run, which keeps its
    rounds. Raises `EdgesimError` for bad input, and for a run that fails.
    """
    settings = configured(config, set)
    where = str(config) if isinstance(config, str | Path) else "config"
    tell = PlainConsole(quiet=quiet)
    tell_user_code(settings, where, not user_code, tell if isinstance(config, str | Path) else None)
    tell_new_defaults([settings], tell)
    settings = completed(settings, set)
    folder = folder_for(out, config, "run", [settings])
    if (folder / "run.json").is_file() and "fork" in read_run(folder):
        raise EdgesimError(f"{folder}: holds a fork, whose past is another run's; choose another folder or remove it")
    return result_of(play(settings, folder, tell, log, on_round, fresh=fresh, checkpoint_s=checkpoint_s), tell)


@why_stopped_printed()
def resume(
    folder: str | Path,
    *,
    allow_other_machine: bool = False,
    quiet: bool = False,
    log: bool | None = None,
    user_code: bool = True,
    checkpoint_s: float = simulation.CHECKPOINT_S,
) -> Run:
    """Resume a run where it was stopped; raises `EdgesimError` where that cannot be done.

    ``allow_other_machine`` resumes it where results may differ in their last bits; for the others see `run`.
    """
    folder, tell = as_path(folder, "folder"), PlainConsole(quiet=quiet)
    if analysed.is_study(folder):
        raise EdgesimError(f"{folder}: is a study; `edgesim study run` resumes it")
    values, path = read_config(folder), folder / "config.toml"
    settings = parse(values, str(path))
    tell_user_code(settings, str(path), not user_code, tell)
    reason = simulation.why_run(folder, complete(settings))
    if reason != simulation.UNFINISHED:
        again = f"but {reason}; `edgesim run` runs it again" if reason else "so nothing is left to resume"
        raise EdgesimError(f"{folder}: is finished, {again}")
    how: dict[str, Any] = {"strict": True, "other_machine": allow_other_machine, "checkpoint_s": checkpoint_s}
    return result_of(play(settings, folder, tell, log, **how), tell)


@why_stopped_printed()
def fork(
    folder: str | Path,
    at_round: int,
    set: Overrides,
    out: str | Path,
    *,
    quiet: bool = False,
    log: bool | None = None,
    user_code: bool = True,
    checkpoint_s: float = simulation.CHECKPOINT_S,
) -> Run:
    """Give a run another future from the end of a round on, in the folder ``out``: the same past, other knobs.

    ``set`` is as for `run`, of `selection`, `round`, the algorithm's options, `evaluation`, `rounds` and
    `stop_at_s`. Where the run has no checkpoint of the round, its past is played again. Raises `EdgesimError`; for the
    others see `run`.
    """
    source, out, tell = as_path(folder, "folder"), as_path(out, "out"), PlainConsole(quiet=quiet)
    tell_user_code(parse(read_config(source), str(source / "config.toml")), str(source), not user_code, tell)

    def note(_: str, text: str) -> None:
        tell.print(f"note: {text}", style="yellow")

    def replay(settings: RunConfig, place: Path, until: int) -> None:
        play(settings, place, tell, log, until=until, checkpoint_s=checkpoint_s)

    settings = forking.prepare(source, at_round, changes_of(set), out, note, replay)
    tell_user_code(settings, str(out), not user_code, tell)
    return result_of(play(settings, out, tell, log, strict=True, checkpoint_s=checkpoint_s), tell)


def tell_user_code(settings: RunConfig, where: str, is_refused: bool, console: PlainConsole | None) -> None:
    """Print, or refuse, the names in a config of code outside edgesim, before any of it is imported."""
    if foreign := ", ".join(f"{key} = {name!r}" for key, name in named_code.foreign(settings).items()):
        if is_refused:
            raise EdgesimError(f"{where}: names code outside edgesim, {foreign}, which is refused here")
        if console is not None:
            console.print(f"note: runs code outside edgesim: {foreign}", style="yellow")


def tell_user_codes(configs: Iterable[RunConfig], where: str, is_refused: bool, console: PlainConsole | None) -> None:
    """`tell_user_code` of several configs, once for each that names other code."""
    for settings in {str(named_code.foreign(config)): config for config in configs}.values():
        tell_user_code(settings, where, is_refused, console)


_NEW_DEFAULTS = {
    "data.partition": '"iid" (was "fedteddi")',
    "learning.pretrain": "false (was true)",
}
"""Keys whose defaults are others than in the last release."""


def tell_new_defaults(configs: Iterable[RunConfig], console: PlainConsole) -> None:
    """Print in one line the keys of `_NEW_DEFAULTS` that configs leave to them; goes with the next release."""
    absent: set[str] = set()
    for config in configs:
        if config.data.partition is None and config.drift.law == "frames" and config.data.dataset != "none":
            absent.add("data.partition")
        if config.learning.training == "real" and "pretrain" not in config.learning.model_fields_set:
            absent.add("learning.pretrain")
    if absent:
        what = ", ".join(f"{key} = {_NEW_DEFAULTS[key]}" for key in sorted(absent))
        console.print(f"note: new defaults: {what}", style="yellow")


def play(
    settings: RunConfig,
    folder: Path,
    console: PlainConsole,
    log: bool | None,
    on_round: Callable[[RunProgress], None] | None = None,
    **how: Any,
) -> simulation.RunResult:
    """Simulate one run, ``how`` as `simulation.run` says, with progress."""
    with bar(console, transient=True, lines=log) as progress:
        whole = extent(settings.resolved())
        task = progress.add_task(settings.selection.policy, total=whole.total, text="")

        def show(done: RunProgress) -> None:
            completed = done.round if whole.unit == ROUNDS else math.floor(done.t_s)
            progress.update(task, completed=completed, text=describe(done, whole.unit))
            if on_round is not None:
                on_round(done)

        return simulation.run(
            settings,
            folder,
            on_round=show,
            on_start=lambda what: progress.update(task, text=what),
            on_note=lambda _, note: progress.console.print(f"note: {note}", style="yellow"),
            **how,
        )


def result_of(result: simulation.RunResult, console: PlainConsole) -> Run:
    """The simulated run; prints whether it was reused or restarted. Raises `EdgesimError` if it did not finish."""
    folder = result.folder
    if result.status != "finished":
        rest = "" if read_table(folder, "rounds").empty else "; the finished rounds are kept"
        raise EdgesimError(f"{folder}: {result.reason}{rest}")
    if result.reused:
        console.print(f"{folder}: finished before, reused")
    if result.restarted:
        console.print(f"{folder}: {result.restarted}, run again from the start")
    return of_folder(folder)
