"""Runs a command of edgesim in this process, as typed, and says how it ended."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from edgesim.analysis.check import run_faults
from edgesim.commands.cli import app
from edgesim.folder.records import read_table
from edgesim.folder.run_schema import SCHEMAS

LIMIT_S = 20.0
GOOD = ("finished", "refused in a line")
"""How a command may end."""
_SIGNED = {"value"}
"""Columns whose numbers may be negative: of `metrics`, which holds measures of any kind."""


class Hang(BaseException):
    """The command went on beyond the limit; no handler of the package catches it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `Hang` in what runs longer than this."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(arguments: Sequence[str], out: Path | None = None) -> tuple[str, str]:
    """How a command ended, one of `GOOD` or a fault, and what it said.

    Parameters
    ----------
    arguments
        The words behind ``edgesim``.
    out
        The run folder that the command writes, whose tables are looked at if it finished.
    """
    try:
        with limited(LIMIT_S):
            result = CliRunner().invoke(app, list(arguments))
    except Hang:
        return "beyond 20 s", ""
    error = result.exception
    if isinstance(error, Hang):
        return "beyond 20 s", ""
    if error is not None and not isinstance(error, SystemExit):
        return "traceback", repr(error)
    if result.exit_code == 0:
        nonsense = bad_number(out) if out is not None else ""
        return ("nonsense in a table", nonsense) if nonsense else ("finished", "")
    lines = [line for line in result.output.splitlines() if line.strip()]
    # Where there are no words the help is shown.
    helps = lines[0].lstrip().startswith("Usage:")
    errors = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if helps or (len(errors) == 1 and errors[0] == len(lines) - 1):
        return "refused in a line", lines[-1] if not helps else "\n".join(lines)
    return "refused in several lines", "\n".join(lines[-12:])


def bad_number(folder: Path) -> str:
    """The first fault that `edgesim check` finds in a run, or a number that is endless, or negative where none is."""
    if not (folder / "rounds.parquet").is_file():
        return ""
    if faults := run_faults(folder):
        return faults[0]
    for name in SCHEMAS:
        for column, values in read_table(folder, name).select_dtypes("number").items():
            known = values.dropna()
            may_be_negative = str(column) in _SIGNED or str(column).endswith(("x_m", "y_m", "_db", "_dbm"))
            if not np.isfinite(known).all() or ((known < 0).any() and not may_be_negative):
                return f"{name}.{column} holds {known.min()} to {known.max()}"
    return "the run finished without a round" if read_table(folder, "rounds").empty else ""
