"""``edgesim study``: how far a study is, doing what is missing of it, and its table at any time."""

from pathlib import Path
from typing import Annotated

import typer

import edgesim
from edgesim.analysis.summary import write_summary
from edgesim.api.run import tell_user_code
from edgesim.screen.console import PlainConsole
from edgesim.screen.plain import plain_errors, say
from edgesim.simulation import named_code
from edgesim.studies import slurm
from edgesim.studies.executor_options import with_executor
from edgesim.studies.ledger import read_ledger
from edgesim.studies.plan_file import read_plan
from edgesim.tables.show import print_study
from edgesim.tables.show_ledger import print_ledger

app = typer.Typer(no_args_is_help=True, help="Say how far a study is, do what is missing of it, or print its table.")

Folder = Annotated[Path, typer.Argument(help="Folder of the study.")]
Jobs = Annotated[int | None, typer.Option(help="Runs at a time; one per processor core when absent.")]
NoUserCode = Annotated[bool, typer.Option("--no-user-code", help="Refuse configs that name code outside edgesim.")]


@app.command()
@plain_errors
def status(folder: Folder) -> None:
    """Say how many runs are finished, and what became of the others, from their folders alone."""
    print_ledger(folder, read_ledger(folder, rounds=True))


@app.command()
@plain_errors
@with_executor
def run(
    folder: Folder,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try runs that failed once more.")] = False,
    jobs: Jobs = None,
    no_user_code: NoUserCode = False,
    check: Annotated[bool, typer.Option("--check", help="Check each finished run, as edgesim check does.")] = False,
) -> None:
    """Do what is missing of a study: what was never begun, stopped or lost; several processes may at once."""
    run_unfinished(folder, retry_failed, jobs, no_user_code, check)


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
    print_study(folder, PlainConsole())


def run_unfinished(folder: Path, retry_failed: bool, jobs: int | None, no_user_code: bool, check: bool = False) -> None:
    """Run the unfinished runs of a study; exit with status 1 if a run did not finish."""
    study = read_plan(folder)
    _report_user_code(study, folder, no_user_code)
    edgesim.run_study(study, folder, jobs, retry_failed=retry_failed, check=check)
    ledger = read_ledger(folder, rounds=True)
    print_ledger(folder, ledger)
    if any(state.status not in ("finished", "pruned") for state in ledger.values()):
        raise typer.Exit(1)


def _report_user_code(study: edgesim.Study, folder: Path, is_refused: bool) -> None:
    for settings in {str(named_code.foreign(run.config)): run.config for run in study.runs}.values():
        tell_user_code(settings, str(folder), is_refused, PlainConsole())
