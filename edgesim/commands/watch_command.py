"""``edgesim watch``: how far a study is, while other processes work on it, in the terminal and in the browser."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from edgesim.base.errors import EdgesimError
from edgesim.base.plain_text import printable
from edgesim.folder.state import FolderState
from edgesim.screen.console import PlainConsole
from edgesim.screen.plain import plain_errors, say
from edgesim.studies.ledger import read_any_ledger
from edgesim.tables.show_ledger import headline, ledger_table
from edgesim.tables.table_text import print_whole

_BETWEEN_LOOKS_S = 1.0
_BETWEEN_LINES_S = 30.0
_SHARE_OF_LOOKS = 0.1
"""Share of a processor core: looks at many runs are further apart."""
_REFRESH_S = 10
"""Between two loads of the page by a browser."""
_PORT = 8765


@plain_errors
def watch_command(
    folder: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of a study, or of a run.")],
    web: Annotated[bool, typer.Option("--web", help="Serve the report, too, to browsers of this machine.")] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help=f"With --web; {_PORT} when absent, 0 for any free one.")
    ] = None,
    log: Annotated[
        bool | None, typer.Option("--log/--no-log", help="A line every 30 s, as it is without a terminal.")
    ] = None,
) -> None:
    """Show how far the runs of a study are until all have ended; others work on it. Ctrl-C ends the watch alone."""
    if port is not None and not web:
        raise EdgesimError("--port: is for --web; add it, or leave --port out")
    console = PlainConsole()
    as_lines = not console.is_terminal if log is None else log
    with suppress(KeyboardInterrupt):
        read_any_ledger(folder)
        with _page(folder, _PORT if port is None else port) if web else nullcontext():
            ledger = _lines(folder, console) if as_lines else _live(folder, console)
        if any(state.status not in ("finished", "pruned") for state in ledger.values()):
            raise typer.Exit(1)


def _ledgers(folder: Path) -> Iterator[tuple[dict[str, FolderState], bool]]:
    """Yield the states of the runs, and whether all have ended, repeatedly until they have."""
    over = False
    while not over:
        began_s = time.monotonic()
        ledger = read_any_ledger(folder)
        over = all(state.ended for state in ledger.values())
        yield ledger, over
        if not over:
            time.sleep(max(_BETWEEN_LOOKS_S, (time.monotonic() - began_s) / _SHARE_OF_LOOKS))


def _live(folder: Path, console: PlainConsole) -> dict[str, FolderState]:
    """A table that changes, as tall as the terminal at most, until all runs have ended."""
    with Live(console=console, auto_refresh=False) as live:
        for ledger, over in _ledgers(folder):
            line = Text(printable(headline(folder, ledger)))
            room = None if over else console.height - len(line.wrap(console, console.width)) - 3
            live.update(Group(line, ledger_table(ledger, room)), refresh=True)
    return ledger


def _lines(folder: Path, console: PlainConsole) -> dict[str, FolderState]:
    """A line now and then, and at the end, when all runs have ended, the whole table."""
    due_s = 0.0
    for ledger, over in _ledgers(folder):
        if over or time.monotonic() >= due_s:
            due_s = time.monotonic() + _BETWEEN_LINES_S
            console.print(headline(folder, ledger), soft_wrap=True)
            console.file.flush()
    print_whole(console, ledger_table(ledger))
    return ledger


@contextmanager
def _page(folder: Path, port: int) -> Iterator[None]:
    """Serves the report; at the end browsers get the time to load the page once more, which then stays as it is."""
    # Bokeh takes a second, which watching without a page need not wait for.
    from edgesim.report.report import live_page
    from edgesim.report.server import served

    with served(lambda: live_page(folder, _REFRESH_S), port) as url:
        say(f"the report at {url}, loaded anew every {_REFRESH_S} s")
        sys.stdout.flush()
        yield
        began_s = time.monotonic()
        live_page(folder, _REFRESH_S)
        time.sleep(2 * (_REFRESH_S + time.monotonic() - began_s))
