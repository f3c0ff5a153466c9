"""Tables of the paired differences between a study's policies, or between the values of a knob, over seeds."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from edgesim.analysis.differences import COURSE, LEVEL_POINTS, LEVEL_SHARE, MEASURES, differences_table
from edgesim.analysis.runs import read_study
from edgesim.analysis.summary import TO_TARGET
from edgesim.terminal.table_text import add_in_sections, bare_table, p_value, plain, print_whole, span, with_interval

LEARNING = {
    "rounds_to_target": ("rounds", "{:.1f}"),
    "rounds_to_stay": ("stays", "{:.1f}"),
    "saving": ("saving", "{:+.1%}"),
    "seconds_to_target": ("seconds", "{:.1f}"),
    "seconds_to_stay": ("stays", "{:.1f}"),
    "joules_to_target": ("joules", "{:.0f}"),
    "final_accuracy": ("accuracy", "{:.3f}"),
}
TIMING = {
    "scheduled": ("scheduled", "{:.2f}"),
    "arrived": ("arrived", "{:.2f}"),
    "miss_rate": ("missed", "{:.3f}"),
    "infeasible_share": ("infeasible", "{:.3f}"),
    "spectral_efficiency_bps_per_hz": ("bit/s/Hz", "{:.2f}"),
    "energy_j": ("joules", "{:.0f}"),
    "wasted_share_j": ("waste", "{:.3f}"),
}
"""Column of the summary -> (title, format), of measures that need an accuracy and of those that do not."""
PARTICIPATION = {
    "best_accuracy": ("best", "{:.3f}"),
    "we_percent": ("WE", "{:.2f}"),
    "we_variance": ("variance", "{:.2f}"),
    "idp_points": ("IDP", "{:+.2f}"),
    "id_points": ("ID", "{:.2f}"),
    "forgetting_points": ("forgetting", "{:.2f}"),
}
"""As `TIMING`, of measures of how accuracy goes over rounds."""
_DIFFERENCES = {
    name: (title, form.replace("+", "").replace(":", ":+"))
    for name, (title, form) in (TIMING | LEARNING | PARTICIPATION).items()
}
_OUTCOMES = {"rounds_to_target": "Rounds to accuracy {:g}", "final_accuracy": "Final accuracy"}
"""Measures by which policies are compared, each in its own table."""
_TESTED = (
    f"p: paired t test over seeds, corrected by Holm for all comparisons of its {{}}; intervals are not corrected. "
    f"level: the interval lies within {LEVEL_SHARE:.0%} of the reference's mean (accuracy, misses: {LEVEL_POINTS:g})."
)


def print_comparison(folder: Path, console: Console) -> None:
    """Print the differences of a study's policies from its reference, a table per measure; nothing without accuracies.

    Runs are paired by seed; pairs of which one run never reached the target are left out of the first table.
    """
    study = read_study(folder)
    table = differences_table(folder, "policy", study.reference)
    outcomes = {name: text for name, text in _OUTCOMES.items() if name in table}
    if not outcomes:
        return
    knobs = list(table.columns[: table.columns.get_loc("pairs")])
    varied = [knob for knob in knobs if table[knob].nunique(dropna=False) > 1 or knob == "policy"]
    for name, text in outcomes.items():
        title = f"{text.format(study.target)}: difference to {study.reference}"
        shown = bare_table(title, varied, ("pairs", "difference", "p"))
        shown.add_column("reading", no_wrap=True)
        add_in_sections(shown, table, varied, functools.partial(_compared_cells, name))
        print_whole(console, shown)
    console.print(_TESTED.format("table"), highlight=False)
    _note_left_out(table, console)


def print_differences(table: pd.DataFrame, reference: str, console: Console) -> None:
    """Print paired differences to a reference, as `edgesim.analysis.differences.summarise_differences` gives them."""
    knobs = list(table.columns[: table.columns.get_loc("pairs")])
    varied = [knob for knob in knobs if table[knob].nunique(dropna=False) > 1] or knobs[:1]
    pairs = span(table["pairs"], "seeds")
    present = {name: _DIFFERENCES[name] for name in MEASURES if name in table}
    # A mean of zero with an interval of zero: no pair differs.
    same = [name for name in present if not table[[name, f"{name}_high"]].fillna(0).any(axis=None)]
    measures = {name: look for name, look in present.items() if name not in same} or present
    censored = bool(table["never"].any())
    headings = [*(["never"] if censored else []), *(heading for heading, _ in measures.values())]
    title = f"Differences to {reference}, seed by seed: mean ± 95 % t interval over {pairs}"
    shown = bare_table(title, varied, headings)
    marks = {"level": " =", "not distinguishable": "  ", "": "  "}
    for row in table.to_dict("records"):
        cells = [
            with_interval(row, name, _DIFFERENCES[name][1]) + marks.get(row[f"{name}_reading"], " *")
            for name in measures
        ]
        never = [str(row["never"])] if censored else []
        shown.add_row(*(plain(row[knob]) for knob in varied), *never, *cells)
    print_whole(console, shown)
    course = (
        " WE, IDP and ID (points) are corrected together; WE and IDP are level within a point."
        if any(name in measures for name in COURSE)
        else ""
    )
    marks_mean = "*: p below 0.05; =: level; else not distinguishable."
    console.print(f"{marks_mean} {_TESTED.format('column')}{course}", highlight=False)
    if len(measures) < len(present):
        console.print(f"The same in all pairs: {', '.join(present[name][0] for name in same)}.", highlight=False)
    _note_left_out(table, console)


def _compared_cells(name: str, row: Mapping[Any, Any]) -> tuple[str, str, str, str]:
    """How many pairs a row compares in a measure, the difference, its p value and how to read it."""
    left_out = int(row["never"]) if name in TO_TARGET else 0
    pairs = f"{row['pairs'] - left_out} of {row['pairs']}" if left_out else str(row["pairs"])
    difference = with_interval(row, name, _DIFFERENCES[name][1])
    return pairs, difference, p_value(row[f"{name}_p_holm"]), row[f"{name}_reading"]


def _note_left_out(table: pd.DataFrame, console: Console) -> None:
    if never := int(table["never"].sum()):
        console.print(
            f"{never} {'pair' if never == 1 else 'pairs'} of which a run never reached the target left out of rounds, "
            "seconds and joules to it; what remains flatters the one that never did.",
            highlight=False,
        )
