"""The `edgesim` command."""

import ast
import os
import sys
import textwrap
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import tomli_w
import typer
from rich.console import Console

from edgesim import forking, simulation
from edgesim.analysis.runs import is_study, runs_of
from edgesim.config import RunConfig
from edgesim.config_file import load, parse
from edgesim.errors import EdgesimError
from edgesim.files import content
from edgesim.files.paths import system_errors
from edgesim.files.text_file import read_toml
from edgesim.joining import LAWS as JOINING_LAWS
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.datasets import DATASETS
from edgesim.learning.drift import LAWS
from edgesim.learning.partitions import PARTITIONS
from edgesim.learning.payload import PARAMETER_COUNTS, TORCHVISION_COUNTS
from edgesim.migration import in_old_keys, migrated
from edgesim.runs.records import read_config, read_run, read_table, write_whole
from edgesim.selection import SELECTORS
from edgesim.terminal import explain as explaining
from edgesim.terminal import new_command, study_command, trace_command
from edgesim.terminal.compare_command import compare_command
from edgesim.terminal.console import PlainConsole
from edgesim.terminal.options import Command, keys_called
from edgesim.terminal.plain import plain_errors, say
from edgesim.terminal.progress import bar, describe, expected_rounds, rounds_done
from edgesim.terminal.show import print_run, print_study
from edgesim.terminal.study_command import go_on, tell_user_code
from edgesim.traces.models import MODELS

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
app.add_typer(trace_command.app, name="trace")
app.add_typer(study_command.app, name="study")
app.command("compare")(compare_command)


NoUserCode = Annotated[bool, typer.Option("--no-user-code", help="Refuse a config that names code outside edgesim.")]
CheckpointS = Annotated[float, typer.Option(min=0, help="Least wall time between checkpoints; 0: at each round's end.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"edgesim {metadata.version('edgesim')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and end.")
    ] = False,
) -> None:
    pass


class _RunCommand(Command):
    """A command that suggests ``--set`` for a key of the config given as an option."""

    def remedy(self, option: str) -> str:
        """Advice to use ``--set`` for the keys that an unknown option may mean."""
        keys = keys_called(option.lstrip("-").replace("-", "_"), RunConfig().model_dump())
        return f"; {' or '.join(f'--set {key}=VALUE' for key in keys)} sets it in the config" if keys else ""


@app.command(cls=_RunCommand)
@plain_errors
def run(
    config: Annotated[Path, typer.Argument(help="TOML file of the run (see the README).")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override, such as round.tmax_s=0.8.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/<name of the config> when absent.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run from the start, even if it is finished.")] = False,
    no_user_code: NoUserCode = False,
    checkpoint_s: CheckpointS = simulation.CHECKPOINT_S,
) -> None:
    """Simulate one run, or go on with it where it was stopped."""
    settings = load(config, set_ or [])
    tell_user_code(settings, config, no_user_code)
    folder = out or Path("runs") / config.stem
    if (folder / "run.json").is_file() and "fork" in read_run(folder):
        raise EdgesimError(f"{folder}: holds a fork, whose past is another run's; choose another --out or remove it")
    _simulate(settings, folder, fresh=fresh, checkpoint_s=checkpoint_s)


@app.command()
@plain_errors
def resume(
    run: Annotated[Path, typer.Argument(help="Folder of a run or a study that was stopped.")],
    other_machine: Annotated[
        bool, typer.Option("--allow-other-machine", help="Go on where results may differ in their last bits.")
    ] = False,
    no_user_code: NoUserCode = False,
    checkpoint_s: CheckpointS = simulation.CHECKPOINT_S,
) -> None:
    """Go on with a run, or with a study, where it was stopped."""
    if is_study(run):
        go_on(run, retry_failed=False, jobs=None, no_user_code=no_user_code)
        return
    values, path = read_config(run), run / "config.toml"
    if migrated(values) != values:
        raise EdgesimError(f"{run}: holds a run of edgesim 0.2 or before, which cannot go on; run it again elsewhere")
    settings = parse(values, str(path))
    tell_user_code(settings, path, no_user_code)
    if simulation.why_run(run, simulation.complete(settings)) != simulation.UNFINISHED:
        raise EdgesimError(f"{run}: is finished, so nothing is left to go on with")
    _simulate(settings, run, strict=True, other_machine=other_machine, checkpoint_s=checkpoint_s)


@app.command()
@plain_errors
def fork(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    at_round: Annotated[int, typer.Option(help="The last round of the common past.")],
    out: Annotated[Path, typer.Option(help="Folder of the fork.")],
    set_: Annotated[list[str], typer.Option("--set", help="What is other from then on, such as round.tmax_s=0.8.")],
    no_user_code: NoUserCode = False,
    checkpoint_s: CheckpointS = simulation.CHECKPOINT_S,
) -> None:
    """Give a run another future from the end of a round on: the same past, other knobs."""
    tell_user_code(parse(read_config(run), str(run / "config.toml")), run, no_user_code)
    console = PlainConsole()

    def note(_: str, told: str) -> None:
        console.print(f"note: {told}", style="yellow", highlight=False)

    def replay(config: RunConfig, folder: Path, until: int) -> None:
        _play(config, folder, console, until=until, checkpoint_s=checkpoint_s)

    settings = forking.prepare(run, at_round, set_, out, note, replay)
    tell_user_code(settings, out, no_user_code)
    _simulate(settings, out, strict=True, checkpoint_s=checkpoint_s)


def _simulate(settings: RunConfig, folder: Path, **how: Any) -> None:
    """Simulate one run, ``how`` as `simulation.run` says, and print what it did."""
    console = PlainConsole()
    result = _play(settings, folder, console, **how)
    if result.status != "finished":
        kept = "" if read_table(folder, "rounds").empty else "; the finished rounds are kept"
        raise EdgesimError(f"{folder}: {result.reason}{kept}")
    if result.reused:
        old = "" if simulation.notes_code(folder) else f"; {simulation.OLDER}"
        console.print(f"{folder}: finished before, reused{old}", highlight=False)
    if result.restarted:
        console.print(f"{folder}: {result.restarted}, run again from the start", highlight=False)
    print_run(folder, console)


def _play(settings: RunConfig, folder: Path, console: Console, **how: Any) -> simulation.Result:
    """Simulate one run, with a bar of its progress."""
    with bar(console, transient=True) as progress:
        task = progress.add_task(settings.selection.policy, total=expected_rounds(settings.resolved()), text="")
        return simulation.run(
            settings,
            folder,
            on_round=lambda done: progress.update(task, completed=rounds_done(settings, done), text=describe(done)),
            on_start=lambda what: progress.update(task, text=what),
            on_note=lambda _, note: progress.console.print(f"note: {note}", style="yellow", highlight=False),
            **how,
        )


@app.command()
@plain_errors
def show(run: Annotated[Path, typer.Argument(help="A run folder.")]) -> None:
    """Print what a run (or a study) did."""
    if is_study(run):
        print_study(run, PlainConsole())
    else:
        print_run(run, PlainConsole())


@app.command()
@plain_errors
def plot(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or one study folder; with --drift a config.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the figures; RUN/plots, or comparison beside several, when absent.")
    ] = None,
    round_: Annotated[int | None, typer.Option("--round", help="Round of the Gantt chart.")] = None,
    drift: Annotated[
        bool, typer.Option("--drift", help="Draw the class mix over time that a config leads to, without a run.")
    ] = False,
    device: Annotated[int | None, typer.Option(help="With --drift, that of one device; of all when absent.")] = None,
) -> None:
    """Draw every figure that the folders support, as PNG and SVG."""
    if drift:
        _plot_drift(runs, out, device)
        return
    if device is not None:
        raise EdgesimError("--device: is for --drift; add it, or leave --device out")
    from edgesim.plots.gallery import draw
    from edgesim.plots.groups import beyond_labels

    folder = runs[0] / "plots" if len(runs) == 1 else runs[0].parent / "comparison"
    console = PlainConsole(stderr=True)
    with console.status("drawing the figures"):
        paths = draw(runs, out or folder, round_)
    if len(runs) > 1 and (told := beyond_labels(runs_of(runs))):
        console.print(f"note: the runs also differ in {', '.join(told)}, which no label says", style="yellow")
    for path in paths:
        say(path)


def _plot_drift(configs: list[Path], out: Path | None, device: int | None) -> None:
    from edgesim.learning.drift.course import course
    from edgesim.plots.drift import draw_drift
    from edgesim.plots.style import save

    if len(configs) > 1:
        raise EdgesimError(f"--drift: expected one config (got {len(configs)})")
    (path,) = configs
    config = simulation.complete(load(path))
    found = course(config, device)
    whose = f"all {config.devices.count} devices" if device is None else f"device {device}"
    figure = draw_drift(found.x, found.shares, found.in_seconds, f"{path.stem}, {config.drift.law}, {whose}")
    folder = out or Path("runs") / f"{path.stem}-drift"
    with system_errors(f"{folder}: cannot be written", "; choose another --out"):
        folder.mkdir(parents=True, exist_ok=True)
    for file in save(figure, folder / ("drift" if device is None else f"drift-device-{device}")):
        say(file)


@app.command()
@plain_errors
def migrate(
    config: Annotated[Path, typer.Argument(help="TOML file of a run in the keys of edgesim 0.2 or before.")],
    out: Annotated[Path | None, typer.Option(help="File to write; to the terminal when absent.")] = None,
) -> None:
    """Write an older config in today's keys; comments are not kept."""
    if out is not None and (os.path.lexists(out) or not out.parent.is_dir()):
        what = "is there already" if os.path.lexists(out) else f"there is no folder {str(out.parent)!r}"
        raise EdgesimError(f"--out {out}: {what}; choose another file to write")
    old = read_toml(config)
    try:
        values = migrated(old)
        simulation.complete(parse(values, str(config)))
    except EdgesimError as error:
        told = str(error).removeprefix(f"{config}: ")
        raise EdgesimError(f"{config}: {in_old_keys(old, error.fields)}{told}") from None
    text = tomli_w.dumps(values)
    if out is None:
        print(text, end="")
    else:
        with system_errors(f"--out {out}: cannot be written"):
            write_whole(out, text)
        print(out)


@app.command()
@plain_errors
def new(
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(new_command.CLASSES)}.")],
    name: Annotated[str, typer.Argument(help="Name of the module, such as my_policy.")],
    folder: Annotated[Path, typer.Option(help="Where the files are written.")] = Path(),
) -> None:
    """Write a plug-in to start from, with its test: a policy, an algorithm, a partition, ..."""
    files, use = new_command.write(kind, name, folder)
    for file in files:
        say(file)
    say(f"to use it: {use}")


@app.command()
@plain_errors
def init(folder: Annotated[Path, typer.Argument(help="A folder that does not exist, or is empty.")]) -> None:
    """Write a folder to start from: a config, a policy with its test, a study, a README."""
    for file in new_command.write_folder(folder):
        say(file)


@app.command()
@plain_errors
def explain(
    key: Annotated[
        str | None, typer.Argument(help="Such as round.tmax_s, tmax_s, or round for all of its keys; all when absent.")
    ] = None,
) -> None:
    """Say what a key of a config means: unit, bounds, default, and which policy, algorithm, ... it is an option of."""
    if key is None:
        say(f"tables of a config: {', '.join(explaining.sections())}; `edgesim explain TABLE` shows their keys")
        return
    for each in explaining.explained(key):
        say(each.line())
        if told := each.told():
            say(textwrap.fill(told, 100, initial_indent="    ", subsequent_indent="    "))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
@plain_errors
def scenario(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Name of a scenario; all are listed when absent.")] = None,
) -> None:
    """Start a scenario, installed or of ./scenarios, with the options behind its name; --help shows them."""
    if name is None or name == "--help":
        for each in content.names("scenarios", ".py"):
            text = ast.get_docstring(ast.parse(content.find("scenarios", each, ".py").read_text())) or ""
            say(f"{each}: {text.splitlines()[0] if text else ''}")
        return
    script = content.find("scenarios", name, ".py")
    os.execv(sys.executable, [sys.executable, str(script), *context.args])


@app.command(name="list")
@plain_errors
def list_() -> None:
    """List what configs can name: policies, algorithms, partitions, drift laws, channels, models, data sets, ..."""
    rows = {
        "policies": SELECTORS.names,
        "algorithms": ALGORITHMS.names,
        "partitions": PARTITIONS.names,
        "drift": LAWS.names,
        "joining": JOINING_LAWS.names,
        "channels": content.names("channels", ".toml"),
        "availability": MODELS.names,
        "traces": content.names("traces", ".parquet"),
        "scenarios": content.names("scenarios", ".py"),
        "models": [*sorted(PARAMETER_COUNTS | TORCHVISION_COUNTS), "torchvision:NAME", "package.module.callable"],
        "datasets": [*DATASETS, "FILE.npz", "FOLDER", "none"],
    }
    for kind, names in rows.items():
        say(f"{kind}: {', '.join(names)}")


def main() -> None:
    """Entry point of the command."""
    # The module of a user's own model, given as a dotted path, is usually in the current folder.
    sys.path.insert(0, "")
    app()
