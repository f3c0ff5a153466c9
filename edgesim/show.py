"""Tables on the terminal: what a run did, what a study found. They read run folders and nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from edgesim import records
from edgesim.analysis.energy import energy_by_activity_j, energy_by_device_j
from edgesim.analysis.runs import read_study
from edgesim.analysis.summary import footnotes, summarise
from edgesim.analysis.waste import AMOUNTS, totals, work_by_kind
from edgesim.errors import EdgesimError

#: Column of the summary -> (title, format).
_LEARNING = {
    "rounds_to_target": ("rounds", "{:.1f}"),
    "not_reached": ("never", "{:.0f}"),
    "seconds_to_target": ("seconds", "{:.1f}"),
    "final_accuracy": ("accuracy", "{:.3f}"),
}
_TIMING = {
    "scheduled": ("scheduled", "{:.2f}"),
    "arrived": ("arrived", "{:.2f}"),
    "miss_rate": ("missed", "{:.3f}"),
    "infeasible_share": ("infeasible", "{:.3f}"),
    "spectral_efficiency_bps_per_hz": ("bit/s/Hz", "{:.2f}"),
    "energy_j": ("joules", "{:.0f}"),
    "wasted_share_j": ("waste", "{:.3f}"),
}
_WITH_INTERVAL = ("rounds_to_target", "final_accuracy")
_COMPARISONS = {
    "rounds_to_target": (("saving", "saving", "{:+.1%}"), ("p", "rounds_p", "{:.4f}")),
    "final_accuracy": (("p", "accuracy_p", "{:.3f}"),),
}


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
        # A run that goes on or was killed may have rows of a round that is not finished.
        activities = records.read_table(folder, "activities").query("round <= @rounds['round'].max()")
        _add_energy(table, rounds, activities, records.read_table(folder, "devices"))
        tested = rounds.dropna(subset="test_accuracy")
        if len(tested):
            last = tested.iloc[-1]
            table.add_row("last test", f"accuracy {last['test_accuracy']:.4f}, macro F1 {last['macro_f1']:.4f}")
    console.print(table)
    if len(rounds):
        console.print(_work_table(activities, records.read_table(folder, "updates")))


def _add_energy(table: Table, rounds: pd.DataFrame, activities: pd.DataFrame, devices: pd.DataFrame) -> None:
    """Rows of the run's energy, by activity and over its devices."""
    by_activity = energy_by_activity_j(activities).sum()
    parts = ", ".join(f"{name} {joules:,.1f} J" for name, joules in by_activity.items() if joules > 0)
    table.add_row("energy", f"{rounds['energy_j'].sum():,.1f} J" + (f" ({parts})" if parts else ""))
    low, middle, high = np.quantile(energy_by_device_j(activities, devices), [0.0, 0.5, 1.0])
    table.add_row("energy per device", f"{low:,.2f} J least, {middle:,.2f} J median, {high:,.2f} J most")


def _work_table(activities: pd.DataFrame, updates: pd.DataFrame) -> Table:
    """What the devices' work came to, a row per kind, and all of it."""
    work = totals(work_by_kind(activities, updates))
    whole = work.sum()
    table = Table(title="work by what came of it", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column("kind")
    for heading in ("device seconds", "bits", "joules", "of all joules"):
        table.add_column(heading, justify="right", no_wrap=True)
    for kind, amounts in [*work.iterrows(), ("all", whole)]:
        if kind == "all":
            table.add_section()
        share = f"{amounts['joules'] / whole['joules']:.1%}" if whole["joules"] else ""
        seconds, bits, joules = (float(amounts[name]) for name in AMOUNTS)
        table.add_row(str(kind), f"{seconds:,.1f}", f"{bits:.4g}", f"{joules:,.1f}", share)
    return table


def print_study(folder: Path, console: Console) -> None:
    """The summary of a study as tables with their notes; raises `EdgesimError` when there is none."""
    study = read_study(folder)
    if not study.finished:
        raise EdgesimError(f"{folder}: no run of the study is finished; run it again, or show one of its run folders")
    summary = _summary(folder)
    knobs = list(summary.columns[: summary.columns.get_loc("seeds")])
    same = [knob for knob in knobs if summary[knob].nunique() == 1]
    told = ", ".join(f"{knob} {_plain(summary[knob].iloc[0])}" for knob in same)
    told = ", ".join(filter(None, [told, f"{summary['seeds'].max()} seeds"]))
    varied = [knob for knob in knobs if knob not in same] or knobs[:1]
    if any(name in summary for name in _LEARNING):
        target = study.target
        goal = "" if target is None else f"rounds and seconds to accuracy {target:g}, "
        _print_whole(console, _table(f"{folder}: {goal}final accuracy ({told})", summary, varied, _LEARNING))
    title = f"{folder}: clients per round, shares (waste: of the joules), totals per run ({told})"
    _print_whole(console, _table(title, summary, varied, _TIMING))
    for note in footnotes(summary, folder):
        console.print(note, highlight=False)


def _summary(folder: Path) -> pd.DataFrame:
    """The summary as written, or a new one where the plan has changed since; raises `EdgesimError`."""
    path = folder / "summary.csv"
    if not path.is_file() or path.stat().st_mtime_ns < (folder / "study.json").stat().st_mtime_ns:
        return summarise(folder)
    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise EdgesimError(f"{path}: cannot be read: {error}; remove it to have it made anew") from None


def _print_whole(console: Console, table: Table) -> None:
    """Print a table in its full width: on a narrow terminal its lines wrap, but nothing is cut off."""
    wide = console.options.update(width=10_000)
    width = max(console.width, Measurement.get(console, wide, table).maximum)
    console.print(table, width=width, crop=False, soft_wrap=False)


def _table(title: str, summary: pd.DataFrame, knobs: list[str], columns: Mapping[str, tuple[str, str]]) -> Table:
    """One row per combination of knobs, a rule where a knob other than the policy changes."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    shown = {name: look for name, look in columns.items() if name in summary}
    if "not_reached" in shown and not summary["not_reached"].any():
        del shown["not_reached"]
    for knob in knobs:
        table.add_column(knob, no_wrap=True)
    for name, (heading, _) in shown.items():
        table.add_column(heading, justify="right", no_wrap=True)
        for comparison, column, _ in _COMPARISONS.get(name, ()):
            if column in summary:
                table.add_column(comparison, justify="right", no_wrap=True)
    others = [knob for knob in knobs if knob != "policy"]
    if others:
        summary = summary.sort_values(others, kind="stable")
    previous = None
    for row in summary.to_dict("records"):
        section = tuple(row[knob] for knob in others)
        if previous is not None and section != previous and "policy" in knobs:
            table.add_section()
        previous = section
        table.add_row(*(_plain(row[knob]) for knob in knobs), *_cells(row, shown))
    return table


def _cells(row: Mapping[Any, Any], shown: Mapping[str, tuple[str, str]]) -> list[str]:
    cells = []
    for name, (_, form) in shown.items():
        text = _number(row[name], form)
        if name in _WITH_INTERVAL and not pd.isna(row[f"{name}_low"]):
            text += f" ± {_number(row[f'{name}_high'] - row[name], form)}"
        cells.append(text)
        cells += [
            "<0.001" if column.endswith("_p") and row[column] < 0.001 else _number(row[column], look)
            for _, column, look in _COMPARISONS.get(name, ())
            if column in row
        ]
    return cells


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: Any, form: str) -> str:
    return "" if value is None or pd.isna(value) else form.format(value)
