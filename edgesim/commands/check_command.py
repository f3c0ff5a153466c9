"""``edgesim check``: which files of a run or a study are whole."""

from pathlib import Path
from typing import Annotated

import typer

from edgesim.analysis.check import check
from edgesim.screen.plain import plain_errors, say


@plain_errors
def check_command(folder: Annotated[Path, typer.Argument(help="Folder of a run or a study.")]) -> None:
    """Say whether all files are what was written; ends with status 1 where one is damaged, and names it."""
    checked = check(folder)
    for fault in checked.damaged:
        say(fault)
    say(checked.summary())
    if checked.damaged:
        raise typer.Exit(1)
