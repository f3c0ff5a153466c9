"""``edgesim report``: one page for a browser about a run or a study."""

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from edgesim.base.errors import EdgesimError
from edgesim.base.paths import system_errors
from edgesim.folder.records import write_whole
from edgesim.screen.command_line import start
from edgesim.screen.console import PlainConsole
from edgesim.screen.plain import plain_errors, say


@plain_errors
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN_OR_STUDY", help="A run folder or a study folder.")],
    out: Annotated[Path | None, typer.Option(help="File to write; report.html in the folder when absent.")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Write what a run (or a study) did as one page for a browser, which needs no network."""
    # Bokeh takes a second, which other commands need not wait for.
    from edgesim.report.report import report_html

    file = out or folder / "report.html"
    if file.is_dir():
        raise EdgesimError(f"--out {file}: is a folder; expected a file to write")
    with PlainConsole(stderr=True).status("writing the report"):
        page = report_html(folder)
    with system_errors(f"{file}: cannot be written", "; choose another file"):
        write_whole(file, page)
    say(file)
    if open_:
        webbrowser.open(file.resolve().as_uri())


def main() -> None:
    """Run ``edgesim report`` without the other commands, whose libraries take longer to load than a report."""
    start(report_command, sys.argv[2:], "edgesim report")
