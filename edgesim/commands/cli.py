"""The `edgesim` command."""

import ast
import os
import sys
import textwrap
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

import edgesim
from edgesim.analysis.runs import is_study
from edgesim.api.names import LISTS
from edgesim.base import content
from edgesim.base.errors import EdgesimError
from edgesim.base.loading import ends_at_once
from edgesim.commands import completion, new_command, study_command, trace_command
from edgesim.commands import explain as explaining
from edgesim.commands.check_command import check_command
from edgesim.commands.compare_command import EPILOG, compare_command
from edgesim.commands.doctor import main as diagnose
from edgesim.commands.export_command import export_command
from edgesim.commands.options import CheckpointS, Log, NoUserCode
from edgesim.commands.report_command import report_command
from edgesim.commands.run_command import RunCommand, run_command
from edgesim.commands.study_command import run_unfinished
from edgesim.commands.tune_command import tune_command
from edgesim.commands.watch_command import watch_command
from edgesim.plots.formats import FORMAT_HELP, USUAL, Formats, known_formats
from edgesim.screen.command_line import Group
from edgesim.screen.plain import ends_with_its_reader, plain_errors, say
from edgesim.simulation import composition as simulation
from edgesim.simulation.complete import complete

_ABOUT = "A discrete-event simulator of a wireless edge network whose devices really train."

app = typer.Typer(cls=Group, no_args_is_help=True, pretty_exceptions_enable=False, help=_ABOUT)
app.add_typer(trace_command.app, name="trace")
app.add_typer(study_command.app, name="study")
app.command("run", cls=RunCommand)(run_command)
app.command("compare", epilog=EPILOG)(compare_command)
for _command in (check_command, report_command, export_command, watch_command, tune_command):
    app.command(_command.__name__.removesuffix("_command"))(_command)


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


@app.command()
@plain_errors
def resume(
    run: Annotated[Path, typer.Argument(help="Folder of a run or a study that was stopped.")],
    other_machine: Annotated[
        bool, typer.Option("--allow-other-machine", help="Resume where results may differ in their last bits.")
    ] = False,
    no_user_code: NoUserCode = False,
    checkpoint_s: CheckpointS = simulation.CHECKPOINT_S,
    log: Log = None,
) -> None:
    """Resume a run, or a study, where it was stopped."""
    if is_study(run):
        run_unfinished(run, retry_failed=False, jobs=None, no_user_code=no_user_code)
        return
    edgesim.resume(
        run, allow_other_machine=other_machine, log=log, user_code=not no_user_code, checkpoint_s=checkpoint_s
    ).show()


@app.command()
@plain_errors
def fork(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    at_round: Annotated[int, typer.Option(help="The last round of the common past.")],
    out: Annotated[Path, typer.Option(help="Folder of the fork.")],
    set_: Annotated[
        list[str],
        typer.Option("--set", help="A key and its value from then on, such as round.tmax_s=0.8; may be repeated."),
    ],
    no_user_code: NoUserCode = False,
    checkpoint_s: CheckpointS = simulation.CHECKPOINT_S,
    log: Log = None,
) -> None:
    """Give a run another future from the end of a round on: the same past, other knobs."""
    edgesim.fork(run, at_round, set_, out, log=log, user_code=not no_user_code, checkpoint_s=checkpoint_s).show()


@app.command()
@plain_errors
def show(
    run: Annotated[Path, typer.Argument(help="Folder of a run or a study.")],
    whole: Annotated[
        bool, typer.Option("--all", help="Also WE, ID, forgetting, roughness, the data's skew, work by kind, back end.")
    ] = False,
) -> None:
    """Print what a run (or a study) did: accuracy, seconds, joules, who took part and what was lost."""
    edgesim.open(run).show(whole)


@app.command()
@plain_errors
def plot(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or one study folder; with --drift a config.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the figures; RUN/plots, or comparison beside several, when absent.")
    ] = None,
    round_: Annotated[int | None, typer.Option("--round", help="Round of the Gantt chart.")] = None,
    format_: Annotated[str, typer.Option("--format", help=FORMAT_HELP)] = USUAL,
    drift: Annotated[
        bool, typer.Option("--drift", help="Draw the class mix over time that a config leads to, without a run.")
    ] = False,
    device: Annotated[int | None, typer.Option(help="With --drift, that of one device; of all when absent.")] = None,
) -> None:
    """Draw every figure that the folders support."""
    formats = known_formats(format_, "--format")
    if drift:
        _plot_drift(runs, out, device, formats)
        return
    if device is not None:
        raise EdgesimError("--device: is for --drift; add it, or leave --device out")
    for path in edgesim.draw(runs, out, round_, format_):
        say(path)


def _plot_drift(configs: list[Path], out: Path | None, device: int | None, formats: Formats) -> None:
    from edgesim.learning.drift.mix_over_time import mix_over_time
    from edgesim.plots.drift import draw_drift
    from edgesim.plots.style import save

    if len(configs) > 1:
        raise EdgesimError(f"--drift: expected one config (got {len(configs)})")
    (path,) = configs
    config = complete(edgesim.load(path))
    mix = mix_over_time(config, device)
    whose = f"all {config.devices.count} devices" if device is None else f"device {device}"
    figure = draw_drift(mix.x, mix.shares, mix.in_seconds, f"{config.drift.law} drift, {whose}")
    folder = out or Path("runs") / f"{path.stem}-drift"
    for file in save(figure, folder / ("drift" if device is None else f"drift-device-{device}"), formats):
        say(file)


@app.command()
@plain_errors
def new(
    kind: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(new_command.TEMPLATES)}.", autocompletion=lambda: [*new_command.TEMPLATES]
        ),
    ],
    name: Annotated[str, typer.Argument(help="Name of the module, such as my_policy.")],
    folder: Annotated[Path, typer.Option(help="Where the files are written.")] = Path(),
) -> None:
    """Write a plug-in to start from, with its test: a policy, an algorithm, a partition, a predictor, a metric, ..."""
    files, use = new_command.write(kind, name, folder)
    for file in files:
        say(file)
    say(f"to use it: {use}")


@app.command()
@plain_errors
def init(
    folder: Annotated[Path | None, typer.Argument(help="A folder that does not exist, or is empty.")] = None,
    like: Annotated[
        str | None,
        typer.Option(help="Only a config: a paper's setting.", autocompletion=lambda: [*new_command.presets()]),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the settings of papers.")] = False,
) -> None:
    """Write a folder to start from: a config, a policy with its test, a study, a README; or a paper's setting."""
    if list_them:
        if like is not None or folder is not None:
            raise EdgesimError(f"--list: lists all settings; leave {'FOLDER' if like is None else '--like'} out")
        for name, text in new_command.presets().items():
            say(f"{name}: {text}")
    elif folder is None:
        raise EdgesimError("FOLDER: is missing; expected a folder that does not exist, or is empty, or --list")
    else:
        for file in new_command.write_folder(folder) if like is None else [new_command.write_preset(like, folder)]:
            say(file)


@app.command()
@plain_errors
def explain(
    key: Annotated[
        str | None,
        typer.Argument(
            help="Such as round.tmax_s, tmax_s, or round for all of its keys; the tables are listed when absent.",
            autocompletion=completion.keys,
        ),
    ] = None,
) -> None:
    """Say what a key of a config means: unit, bounds, default, and which policy, algorithm, ... it is an option of."""
    if key is None:
        say(f"tables of a config: {', '.join(explaining.sections())}; `edgesim explain TABLE` shows their keys")
        return
    for entry in explaining.explained(key):
        say(entry.line())
        if meaning := entry.meaning():
            say(textwrap.fill(meaning, 100, initial_indent="    ", subsequent_indent="    "))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False)
@plain_errors
def scenario(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(help="Name of a scenario; all are listed when absent.", autocompletion=completion.scenarios),
    ] = None,
) -> None:
    """Start a scenario, installed or of ./scenarios, with the options behind its name; --help shows them."""
    if name is None or name == "--help":
        for script_name in edgesim.scenarios():
            text = ast.get_docstring(ast.parse(content.find("scenarios", script_name, ".py").read_text())) or ""
            say(f"{script_name}: {text.splitlines()[0] if text else ''}")
        return
    script = content.find("scenarios", name, ".py")
    os.execv(sys.executable, [sys.executable, str(script), *context.args])


@app.command(name="list")
@plain_errors
def list_() -> None:
    """List what configs can name: policies, algorithms, partitions, drift laws, channels, models, data sets, ..."""
    beside = {"models": ["torchvision:NAME", "package.module.callable"], "datasets": ["FILE.npz", "FOLDER", "none"]}
    for names in LISTS:
        kind = names.__name__
        say(f"{kind.replace('_', ' ')}: {', '.join([*names(), *beside.get(kind, [])])}")


@app.command()
def doctor() -> None:
    """Print versions, the machine and what is missing of an installation: what a bug report needs first."""
    diagnose()


def main() -> None:
    """Entry point of the command."""
    # The module of a user's own model, given as a dotted path, is usually in the current folder.
    sys.path.insert(0, "")
    ends_at_once()
    with ends_with_its_reader():
        app()
