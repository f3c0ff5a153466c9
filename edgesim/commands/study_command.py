"""``edgesim study``: a study from a file, how far one is, doing what is missing of it, and its table at any time."""

from pathlib import Path
from typing import Annotated

import typer

import edgesim
from edgesim.analysis.runs import StudyFolder
from edgesim.analysis.summary import write_summary
from edgesim.api.run import tell_user_codes
from edgesim.base.errors import EdgesimError
from edgesim.commands import new_command
from edgesim.commands.options import NoUserCode
from edgesim.plots.formats import FORMAT_HELP, USUAL, known_formats
from edgesim.screen.command_line import Group
from edgesim.screen.console import PlainConsole
from edgesim.screen.plain import plain_errors, say
from edgesim.studies import slurm
from edgesim.studies.executor_options import with_executor
from edgesim.studies.ledger import read_ledger
from edgesim.studies.plan_file import read_plan
from edgesim.studies.study_table import parse_axes, typed_seeds
from edgesim.tables.show import print_study
from edgesim.tables.show_ledger import print_ledger

app = typer.Typer(cls=Group, no_args_is_help=True, help="Run a study, say how far it is, or print its table.")

Folder = Annotated[Path, typer.Argument(help="Folder of the study.")]
Jobs = Annotated[int | None, typer.Option(help="Runs at a time; one per processor core when absent.")]


@app.command()
@plain_errors
def status(folder: Folder) -> None:
    """Say how many runs are finished, and what became of the others, from their folders alone."""
    print_ledger(folder, read_ledger(folder, rounds=True))


@app.command()
@plain_errors
@with_executor
def run(
    study: Annotated[Path, typer.Argument(help="TOML file, with \\[study] or beside --axis, or a study's folder.")],
    axis: Annotated[
        list[str] | None,
        typer.Option(help="A key and its values, such as selection.policy=random,fedteddi; may be repeated."),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Number of seeds, or the seeds, such as 3,7; 3 seeds without \\[study].")
    ] = None,
    target: Annotated[float | None, typer.Option(help="Accuracy of what is to a target.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="Policy that the others are compared with; random or the first when absent.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A key and its value, such as rounds=50; may be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Study folder; runs/<name of the file> when absent.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do again what is finished.")] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Of a folder: try runs that failed once more.")
    ] = False,
    jobs: Jobs = None,
    no_user_code: NoUserCode = False,
    check: Annotated[bool, typer.Option("--check", help="Check each finished run, as edgesim check does.")] = False,
    format_: Annotated[str, typer.Option("--format", help=FORMAT_HELP)] = USUAL,
) -> None:
    """Run a study, or what is missing of it: what was never begun, stopped or lost; several processes may at once."""
    if not study.exists():
        raise EdgesimError(f"{study}: no such file or folder")
    if not study.is_file():
        planning = {"axis": axis, "seeds": seeds, "target": target, "reference": reference, "set": set_, "out": out}
        if given := [name for name, value in {**planning, "fresh": fresh or None}.items() if value is not None]:
            raise EdgesimError(f"--{given[0]}: is for a TOML file, and {study} is none")
        run_unfinished(study, retry_failed, jobs, no_user_code, check)
        return
    formats, axes = known_formats(format_, "--format"), parse_axes(axis or [])
    done = edgesim.study(
        study,
        axes,
        None if seeds is None else typed_seeds(seeds),
        out,
        target=target,
        reference=reference,
        set=set_,
        jobs=jobs,
        fresh=fresh,
        user_code=not no_user_code,
        check=check,
    )
    # Figures take a second to load, which no other command has to wait for.
    from edgesim.scenario.closing import conclude

    conclude(done.folder, first_values(done.plan), formats=formats, whole=False)


@app.command()
@plain_errors
def new(
    file: Annotated[Path, typer.Argument(help="TOML file to write, such as study.toml; it must not exist.")],
) -> None:
    """Write a study to start from: a config, what varies in it, and the seeds."""
    say(new_command.write_study(file))
    say(f"to use it: edgesim study run {file}")


@app.command()
@plain_errors
def submit(
    folder: Folder,
    tasks: Annotated[int, typer.Option(help="Processes at most, each on as many cores as a task gets.")],
    sbatch: Annotated[str, typer.Option(help="Options of sbatch, such as '--time=2:00:00 --cpus-per-task=4'.")] = "",
) -> None:
    """Write an array job of SLURM that does what is missing of a study, and submit it where sbatch is."""
    _report_user_code(read_plan(folder), folder, False)
    script = slurm.write_script(folder, tasks, sbatch)
    answer = slurm.submit(script)
    say(f"{script}: {answer}" if answer else f"{script}: no sbatch is on the path here; give it to sbatch elsewhere")


@app.command()
@plain_errors
def table(folder: Folder) -> None:
    """Print the table of what is finished so far, and write summary.csv."""
    write_summary(folder)
    print_study(folder, PlainConsole(), whole=False)


def run_unfinished(folder: Path, retry_failed: bool, jobs: int | None, no_user_code: bool, check: bool = False) -> None:
    """Run the unfinished runs of a study; exit with status 1 if a run did not finish."""
    study = read_plan(folder)
    _report_user_code(study, folder, no_user_code)
    edgesim.run_study(study, folder, jobs, retry_failed=retry_failed, check=check)
    ledger = read_ledger(folder, rounds=True)
    print_ledger(folder, ledger)
    if any(state.status not in ("finished", "pruned") for state in ledger.values()):
        raise typer.Exit(1)


def first_values(study: StudyFolder) -> list[tuple[str, str]]:
    """Each knob but the policy with its first value, which the knob's other values are compared with."""
    values: dict[str, list[str]] = {}
    for entry in study.planned:
        for knob, value in entry.run.knobs.items():
            values.setdefault(knob, []).append(str(value))
    return [(knob, of[0]) for knob, of in values.items() if knob != "policy" and len({*of}) > 1]


def _report_user_code(study: edgesim.Study, folder: Path, is_refused: bool) -> None:
    tell_user_codes((run.config for run in study.runs), str(folder), is_refused, PlainConsole())
