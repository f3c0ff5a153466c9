"""Commands as typed, in this process, and a console that says nothing."""

import io
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from typer.testing import CliRunner

from edgesim.commands.cli import app


def edgesim_lines(*words: object) -> tuple[int, str]:
    """Exit status and output of a command; what it raises beside its own end fails the test."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.exit_code, result.output


def edgesim(*words: object) -> tuple[int, str]:
    """Exit status and output of a command, its words parted by single spaces however wide the terminal is."""
    status, output = edgesim_lines(*words)
    return status, " ".join(output.split())


def refused(*words: object) -> str:
    """The one line that a command prints which is refused."""
    status, output = edgesim_lines(*words)
    assert status == 2, output
    (line,) = output.splitlines()
    assert line.startswith("error: ")
    return line


def printed(show: Callable[[Path, Console], None], folder: Path, width: int = 2000) -> str:
    """What a function shows of a folder."""
    console = Console(file=io.StringIO(), width=width)
    show(folder, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def quiet() -> Console:
    """A console that is read by nobody."""
    return Console(file=io.StringIO(), width=300)
