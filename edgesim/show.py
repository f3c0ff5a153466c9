"""Tables on the terminal: what a run did, what a study found. They read run folders and nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from edgesim import records
from edgesim.analysis.summary import footnotes, summarise

_LEARNING = {
    "rounds_to_target": ("rounds to target", "{:.1f}"),
    "seconds_to_target": ("seconds to target", "{:.1f}"),
    "final_accuracy": ("final accuracy", "{:.3f}"),
}
_TIMING = {
    "scheduled": ("scheduled", "{:.2f}"),
    "arrived": ("arrived", "{:.2f}"),
    "miss_rate": ("miss rate", "{:.3f}"),
    "infeasible_share": ("infeasible", "{:.3f}"),
    "spectral_efficiency_bps_per_hz": ("bit/s/Hz", "{:.2f}"),
}
_FIRST_MEASURE = "seeds"


def print_run(folder: Path, console: Console) -> None:
    """How one run ended and its totals; raises `EdgesimError` when the folder holds none."""
    run = records.read_run(folder)
    config = records.read_config(folder)
    rounds = records.read_table(folder, "rounds")
    table = Table(title=str(folder), show_header=False, title_justify="left")
    table.add_row("status", f"{run['status']}" + (f" ({run['reason']})" if run.get("reason") else ""))
    table.add_row("policy, seed", f"{config['selection']['policy']}, {config['seed']}")
    table.add_row("rounds", f"{len(rounds)}")
    if len(rounds):
        table.add_row("simulated time", f"{rounds['t_end_s'].iloc[-1]:,.3f} s")
        for name in ("candidates", "selected", "arrived", "late", "dropped", "jobs_trained"):
            table.add_row(name.replace("_", " "), f"{rounds[name].mean():.2f} per round, {rounds[name].sum():,} in all")
        table.add_row("bits up", f"{rounds['bits_up'].sum():.4g}")
        table.add_row("energy", f"{rounds['energy_j'].sum():,.1f} J")
        tested = rounds.dropna(subset="test_accuracy")
        if len(tested):
            last = tested.iloc[-1]
            table.add_row("last test", f"accuracy {last['test_accuracy']:.4f}, macro F1 {last['macro_f1']:.4f}")
    console.print(table)


def print_study(folder: Path, console: Console) -> None:
    """The summary of a study as a table with its notes; raises `EdgesimError` when there is none."""
    path = folder / "summary.csv"
    summary = pd.read_csv(path) if path.is_file() else summarise(folder)
    knobs = list(summary.columns[: summary.columns.get_loc(_FIRST_MEASURE)])
    table = Table(title=str(folder), title_justify="left")
    for knob in knobs:
        table.add_column(knob, justify="left")
    table.add_column("seeds", justify="right")
    shown = {name: look for name, look in (_LEARNING | _TIMING).items() if name in summary}
    for name, (title, _) in shown.items():
        table.add_column(title, justify="right")
        if name == "rounds_to_target":
            table.add_column("saving", justify="right")
            table.add_column("p", justify="right")
        if name == "final_accuracy" and "accuracy_p" in summary:
            table.add_column("p", justify="right")
    previous = None
    for row in summary.to_dict("records"):
        section = tuple(row[knob] for knob in knobs if knob != "policy")
        if previous is not None and section != previous:
            table.add_section()
        previous = section
        table.add_row(*_cells(row, knobs, shown))
    console.print(table)
    for note in footnotes(summary, folder):
        console.print(note, highlight=False)


def _cells(row: Mapping[Any, Any], knobs: list[str], shown: dict[str, tuple[str, str]]) -> list[str]:
    cells = [f"{row[knob]:g}" if isinstance(row[knob], float) else str(row[knob]) for knob in knobs]
    cells.append(str(row["seeds"]))
    for name, (_, form) in shown.items():
        text = _number(row[name], form)
        if name in _LEARNING and text:
            text += f" [{_number(row[f'{name}_low'], form)}, {_number(row[f'{name}_high'], form)}]"
        if name == "rounds_to_target" and row["not_reached"]:
            text += f" ({row['not_reached']} never)"
        # A bracket would be markup to rich.
        cells.append(text.replace("[", "\\["))
        if name == "rounds_to_target":
            cells += [_number(row.get("saving"), "{:+.1%}"), _number(row.get("rounds_p"), "{:.3f}")]
        if name == "final_accuracy" and "accuracy_p" in row:
            cells.append(_number(row["accuracy_p"], "{:.3f}"))
    return cells


def _number(value: Any, form: str) -> str:
    return "" if value is None or pd.isna(value) else form.format(value)
