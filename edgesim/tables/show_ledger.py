"""The states of a study's runs as text: counts, and a table with a row for each run."""

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rich.table import Table
from rich.text import Text

from edgesim.analysis.runs import is_study
from edgesim.base.lease import LEASE_S
from edgesim.base.plain_text import printable
from edgesim.folder.state import STATUSES, FolderState
from edgesim.screen.console import PlainConsole
from edgesim.tables.table_text import bare_table, print_whole

_URGENT = ("running", "lost", "failed", "damaged", "stopped", "finished", "pruned", "planned")
"""Statuses in the order in which runs are shown where there is no room for all."""


def print_ledger(folder: Path, ledger: Mapping[str, FolderState]) -> None:
    """Print counts of the runs by status, and a row for each that is running, stopped, lost, failed or damaged."""
    console = PlainConsole()
    console.print(headline(folder, ledger), highlight=False, soft_wrap=True)
    rows = {name: state for name, state in ledger.items() if state.status not in ("finished", "planned", "pruned")}
    if rows:
        print_whole(console, ledger_table(rows))


def headline(folder: Path, ledger: Mapping[str, FolderState]) -> str:
    """Line with the counts of runs by status and of rounds, and the command to resume if no process works on them."""
    states = ledger.values()
    # A finished run may have ended before its last planned round; without its tables, all are taken as done.
    ends = [state.done if state.status == "finished" and state.done else state.of or 0 for state in states]
    done = sum(end if state.status == "finished" else state.done for state, end in zip(states, ends, strict=True))
    of = sum(ends)
    runs = f"{len(ledger)} runs: " if is_study(folder) else ""
    count = Counter(state.status for state in states)
    counts = ", ".join(f"{count[status]} {status}" for status in STATUSES if count[status])
    line = f"{folder}: {runs}{counts}; {done:,} of {of:,} rounds"
    if all(state.ended for state in states) or count["running"]:
        return line
    command = "study run" if runs else "resume"
    return f"{line}; no process works on it; `edgesim {command} {shlex.quote(str(folder))}` resumes it"


def ledger_table(ledger: Mapping[str, FolderState], room: int | None = None) -> Table:
    """Table of runs whose last column a narrow terminal cuts; if there are more than ``room``, urgent ones first."""
    table = bare_table("", ["run", "status"], ["rounds", "accuracy", "simulated s"])
    table.add_column("what", min_width=4)
    rows = list(ledger.items())
    if room is not None and len(rows) > room:
        rows.sort(key=lambda row: _URGENT.index(row[1].status))
    for name, state in rows:
        rounds = "" if state.of is None else f"{state.done:,}/{state.of:,}"
        accuracy = "" if state.accuracy is None else f"{state.accuracy:.4f}"
        t_s = f"{state.t_s:,.1f}" if state.t_s else ""
        what = Text(printable(_what(state)), no_wrap=True, overflow="ellipsis")
        table.add_row(name, state.status, rounds, accuracy, t_s, what)
    return table


def _what(state: FolderState) -> str:
    """Text about a run beside its status: the process that works on it, or why it ended."""
    if state.holder is None:
        return state.reason
    who = f"process {state.holder.pid} on {state.holder.host}"
    if state.silent_s is None:
        return f"{who} is gone"
    unsure = f"; lost after {LEASE_S:g} s" if state.silent_s > LEASE_S / 3 else ""
    return f"{who}, last heard of {max(0.0, state.silent_s):.0f} s ago{unsure}"
