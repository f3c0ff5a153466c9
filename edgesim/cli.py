"""The `edgesim` command."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn, ParamSpec, TypeVar

import typer
from rich.console import Console

from edgesim import content, simulation
from edgesim.config import load
from edgesim.errors import EdgesimError
from edgesim.learning.payload import PARAMETER_COUNTS
from edgesim.progress import bar, describe, expected_rounds
from edgesim.selection import SELECTORS
from edgesim.show import print_run, print_study

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
P = ParamSpec("P")
R = TypeVar("R")


def plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn bad input into one line on stderr and status 2, and Ctrl-C into status 130; scenarios use it too."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except EdgesimError as error:
            _stop(f"error: {error}", 2)
        except KeyboardInterrupt:
            _stop("stopped; what was finished is kept", 130)

    return wrapped


def _stop(message: str, status: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(status)


@app.command()
@plain_errors
def run(
    config: Annotated[Path, typer.Argument(help="TOML file of the run (see the README).")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override, such as round.tmax_s=0.8.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/<name of the config> when absent.")] = None,
) -> None:
    """Simulate one run."""
    settings = load(config, set_ or [])
    folder = out or Path("runs") / config.stem
    console = Console()
    with bar(console, transient=True) as progress:
        task = progress.add_task(settings.selection.policy, total=expected_rounds(settings.resolved()), text="")
        result = simulation.run(
            settings,
            folder,
            on_round=lambda done: progress.update(task, completed=done.round, text=describe(done)),
            on_start=lambda what: progress.update(task, text=what),
        )
    if result.status != "finished":
        raise EdgesimError(f"{folder}: {result.reason}; the finished rounds are kept")
    if result.reused:
        console.print(f"{folder}: finished before, reused", highlight=False)
    if result.restarted:
        console.print(f"{folder}: was unfinished, run again from the start", highlight=False)
    print_run(folder, console)


@app.command()
@plain_errors
def show(run: Annotated[Path, typer.Argument(help="A run folder.")]) -> None:
    """Print what a run (or a study) did."""
    if (run / "study.json").is_file():
        print_study(run, Console())
    else:
        print_run(run, Console())


@app.command()
@plain_errors
def plot(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or one study folder.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the figures; RUN/plots, or comparison beside several, when absent.")
    ] = None,
    round_: Annotated[int | None, typer.Option("--round", help="Round of the Gantt chart.")] = None,
) -> None:
    """Draw every figure that the folders support, as PNG and SVG."""
    from edgesim.plots.gallery import draw

    folder = runs[0] / "plots" if len(runs) == 1 else runs[0].parent / "comparison"
    with Console(stderr=True).status("drawing the figures"):
        paths = draw(runs, out or folder, round_)
    for path in paths:
        print(path)


@app.command(name="list")
@plain_errors
def list_() -> None:
    """List policies, channels, scenarios and models."""
    rows = {
        "policies": sorted(SELECTORS),
        "channels": content.names("channels", ".toml"),
        "scenarios": content.names("scenarios", ".py"),
        "models": [*sorted(PARAMETER_COUNTS), "package.module.callable"],
        "datasets": ["digits", "FILE.npz", "cifar10", "cifar100", "none"],
    }
    for kind, names in rows.items():
        print(f"{kind}: {', '.join(names)}")


def main() -> None:
    """Entry point of the command."""
    # A model of the user's own, given as a dotted path, most often lies where the command is typed.
    sys.path.insert(0, "")
    app()
