"""``edgesim export``: a run in the form of other tools."""

from pathlib import Path
from typing import Annotated

import typer

import edgesim
from edgesim.analysis.runs import is_study, runs_of
from edgesim.base.errors import EdgesimError
from edgesim.screen.console import PlainConsole
from edgesim.screen.plain import plain_errors, say


@plain_errors
def export_command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    perfetto: Annotated[Path | None, typer.Option(help="File for a trace that ui.perfetto.dev shows.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Folder for the tables as CSV.")] = None,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard; rounds are steps.")] = None,
    mlflow: Annotated[
        str | None, typer.Option(help="Tracking URI of MLflow: sqlite:///FILE, or the address of a server.")
    ] = None,
) -> None:
    """Write a run in the form of other tools; all but CSV need an extra, such as pip install 'edgesim\\[perfetto]'."""
    if perfetto is None and csv is None and tensorboard is None and mlflow is None:
        raise EdgesimError("nothing to write: give --perfetto FILE, --csv FOLDER, --tensorboard FOLDER or --mlflow URI")
    if is_study(run):
        raise EdgesimError(f"{run}: is a study; export one of its run folders")
    edgesim.read_run(run)
    (run_folder,) = runs_of([run])
    with PlainConsole(stderr=True).status("writing"):
        if perfetto is not None:
            from edgesim.export.perfetto import write_perfetto

            write_perfetto(run_folder, perfetto)
            say(perfetto)
        if csv is not None:
            from edgesim.export.csv_files import write_csv

            for path in write_csv(run, csv):
                say(path)
        if tensorboard is not None:
            from edgesim.export.tensorboard import write_tensorboard

            say(write_tensorboard(run_folder, tensorboard))
        if mlflow is not None:
            from edgesim.export.mlflow_run import write_mlflow

            say(f"MLflow run {write_mlflow(run_folder, mlflow)}")
