"""The states of a study's runs as text: counts, and a table with a row for each run."""

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from edgesim.analysis.runs import has_runs
from edgesim.base.lease import LEASE_S
from edgesim.base.plain_text import printable
from edgesim.folder.state import STATUSES, FolderState
from edgesim.screen.console import PlainConsole
from edgesim.screen.progress import ROUNDS, SECONDS
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
    """Line with the counts of runs by status and of what they did, and the command to resume if no process works on
    them.

    Runs that only ``stop_at_s`` ends are counted in whole simulated seconds, all others in rounds, both as the progress
    of a study is (`edgesim.screen.progress`).
    """
    states = ledger.values()
    runs = f"{len(ledger)} runs: " if has_runs(folder) else ""
    count = Counter(state.status for state in states)
    counts = ", ".join(f"{count[status]} {status}" for status in STATUSES if count[status])
    line = "; ".join([f"{folder}: {runs}{counts}", *_amounts([*states])])
    if all(state.ended for state in states) or count["running"]:
        return line
    command = "study run" if runs else "resume"
    return f"{line}; no process works on it; `edgesim {command} {shlex.quote(str(folder))}` resumes it"


def _amounts(states: Sequence[FolderState]) -> list[str]:
    """Rounds, and simulated seconds, done by runs and planned for them."""
    amounts: dict[str, list[tuple[int, int]]] = {ROUNDS: [], SECONDS: []}
    for state in states:
        is_finished = state.status == "finished"
        if state.of_s is not None:
            whole = math.ceil(state.of_s)
            # The last round of a run may end before the second that ends the run.
            amounts[SECONDS].append((whole if is_finished else math.floor(state.t_s), whole))
        else:
            # A finished run may have made fewer rounds than planned; without its tables, all are taken as made.
            end = state.done if is_finished and state.done else state.of or 0
            amounts[ROUNDS].append((end if is_finished else state.done, end))
    sums = [(*map(sum, zip(*of, strict=True)), unit) for unit, of in amounts.items() if of]
    return [f"{done:,} of {planned:,} {unit}" for done, planned, unit in sums]


def ledger_table(ledger: Mapping[str, FolderState], room: int | None = None) -> Table:
    """Table of runs whose last column a narrow terminal cuts; if there are more than ``room``, urgent ones first."""
    table = bare_table("", ["run", "status"], ["rounds", "accuracy", "simulated s"])
    table.add_column("what", min_width=4)
    rows = list(ledger.items())
    if room is not None and len(rows) > room:
        rows.sort(key=lambda row: _URGENT.index(row[1].status))
    for name, state in rows:
        rounds = f"{state.done:,}/{state.of:,}" if state.of is not None else f"{state.done:,}" if state.done else ""
        accuracy = "" if state.accuracy is None else f"{state.accuracy:.4f}"
        t_s = f"{state.t_s:,.1f}" if state.t_s else ""
        t_s = t_s if state.of_s is None else f"{state.t_s:,.1f}/{state.of_s:,.1f}"
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
