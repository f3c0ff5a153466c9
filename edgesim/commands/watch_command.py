"""``edgesim watch``: how far a study is, while other processes work on it, in the terminal and in the browser."""

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from edgesim.base.errors import EdgesimError
from edgesim.base.plain_text import printable
from edgesim.screen.console import PlainConsole
from edgesim.screen.plain import plain_errors, say
from edgesim.studies.watch import Watch, Watched, is_over
from edgesim.tables.table_text import print_whole
from edgesim.tables.watch_table import headline, table

_BETWEEN_LOOKS_S = 1.0
_BETWEEN_LINES_S = 30.0
_SHARE_OF_LOOKS = 0.1
"""Of a processor core: looks at many runs are further apart."""
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
        watch = Watch(folder)
        watch.look()
        with _page(watch, _PORT if port is None else port) if web else nullcontext():
            runs = _lines(watch, console) if as_lines else _live(watch, console)
        if any(run.state.status not in ("finished", "pruned") for run in runs):
            raise typer.Exit(1)


def _live(watch: Watch, console: PlainConsole) -> list[Watched]:
    """A table that changes, as tall as the terminal at most, until all runs have ended."""
    with Live(console=console, auto_refresh=False) as live:
        while True:
            began_s = time.monotonic()
            runs = watch.look()
            told = Text(printable(headline(watch, runs)))
            room = console.height - len(told.wrap(console, console.width)) - 4
            live.update(Group(told, table(runs, console.width, room)), refresh=True)
            if is_over(runs):
                return runs
            _rest(began_s)


def _lines(watch: Watch, console: PlainConsole) -> list[Watched]:
    """A line now and then, and at the end, when all runs have ended, the whole table."""
    due_s = 0.0
    while not is_over(runs := watch.look()):
        began_s = time.monotonic()
        if began_s >= due_s:
            due_s = began_s + _BETWEEN_LINES_S
            console.print(headline(watch, runs), highlight=False, soft_wrap=True)
            console.file.flush()
        _rest(began_s)
    console.print(headline(watch, runs), highlight=False, soft_wrap=True)
    print_whole(console, table(runs))
    return runs


def _rest(began_s: float) -> None:
    """Wait for the next look, after one that took from ``began_s`` until now."""
    time.sleep(max(_BETWEEN_LOOKS_S, (time.monotonic() - began_s) / _SHARE_OF_LOOKS))


@contextmanager
def _page(watch: Watch, port: int) -> Iterator[None]:
    """Serves the report; at the end browsers get the time to load the page once more, which then stays as it is."""
    # Bokeh takes a second, which watching without a page need not wait for.
    from edgesim.report.server import served

    page = _LivePage(watch)
    with served(page, port) as url:
        say(f"the report at {url}, loaded anew every {_REFRESH_S} s")
        sys.stdout.flush()
        yield
        page.made_s = -math.inf
        page()
        time.sleep(2 * _REFRESH_S)


class _LivePage:
    """Makes the page anew when it is asked for, but not more often than browsers load it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = Watch(watch.folder)
        self._lock = threading.Lock()
        self.made_s = -math.inf
        """When it was made last, by the monotonic clock."""
        self._page = ""
        self._over = False
        """Whether the page is the last one."""

    def __call__(self) -> str:
        """The page of now."""
        from edgesim.report.live import live_page

        with self._lock:
            if not self._over and time.monotonic() - self.made_s > _REFRESH_S / 2:
                runs = self._watch.look()
                told: list[Table | str] = [headline(self._watch, runs), table(runs)]
                self._page = live_page(self._watch.folder, told, None if is_over(runs) else _REFRESH_S)
                self._over = is_over(runs)
                self.made_s = time.monotonic()
            return self._page
