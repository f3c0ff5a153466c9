"""The table of ``edgesim watch``: a row per run, and how far all of them are."""

import shlex
from collections.abc import Sequence

from rich.table import Table

from edgesim.studies.watch import Watch, Watched
from edgesim.tables.show_ledger import counts, what
from edgesim.tables.table_text import bare_table

_LATER = ("running", "lost", "failed", "damaged", "stopped", "finished", "pruned", "planned")
"""Statuses in the order in which runs are shown where there is no room for all."""


def headline(watch: Watch, runs: Sequence[Watched]) -> str:
    """How far all runs are, and what to do where no process works on any of them."""
    done = sum(run.of or 0 if run.state.status == "finished" else run.done for run in runs)
    of = sum(run.of or 0 for run in runs)
    many = f"{len(runs)} runs: " if watch.is_study else ""
    told = f"{watch.folder}: {many}{counts(run.state for run in runs)}; {done:,} of {of:,} rounds"
    if all(run.ended for run in runs) or any(run.state.status == "running" for run in runs):
        return told
    command = "study run" if watch.is_study else "resume"
    return f"{told}; no process works on it; `edgesim {command} {shlex.quote(str(watch.folder))}` goes on with it"


def table(runs: Sequence[Watched], width: int | None = None, room: int | None = None) -> Table:
    """A row per run, whole or within the ``width`` of a terminal, which cuts the last column.

    With ``room`` for fewer rows these are the ones that matter most now, and one that counts the others.
    """
    shown = bare_table("", ["run", "status"], ["rounds", "accuracy", "simulated s"])
    shown.add_column("what", overflow="ellipsis", no_wrap=True)
    kept = list(runs)
    if room is not None and len(runs) > room:
        kept = sorted(runs, key=lambda run: _LATER.index(run.state.status))[: max(1, room - 1)]
    for run in kept:
        rounds = "" if run.of is None else f"{run.done:,}/{run.of:,}"
        accuracy = "" if run.accuracy is None else f"{run.accuracy:.4f}"
        t_s = f"{run.t_s:,.1f}" if run.t_s else ""
        shown.add_row(run.name, run.state.status, rounds, accuracy, t_s, what(run.state))
    if left := set(runs) - set(kept):
        shown.add_row(f"and {len(left)} more", "", "", "", "", counts(run.state for run in left))
    if width is not None:
        others = sum(max(len(str(cell)) for cell in (one.header, *one.cells)) + 1 for one in shown.columns[:-1])
        shown.columns[-1].max_width = max(len("what"), width - others)
    return shown
