"""Tables of the paired differences between a study's policies, or between the values of a knob, over seeds."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from edgesim.analysis.differences import IDENTICAL, MARGIN_POINTS, MARGIN_SHARE, OUTCOMES, differences_table
from edgesim.analysis.judgement import UNLIKE_SPREADS
from edgesim.analysis.runs import read_study
from edgesim.tables.table_text import (
    add_in_sections,
    bare_table,
    number,
    p_value,
    plain,
    print_whole,
    span,
    with_interval,
)

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
"""Titles and formats of the measures of accuracy over rounds, by measure."""
CONVERGENCE = {
    "best_accuracy": ("best", "{:.3f}"),
    "best_round": ("in round", "{:.1f}"),
    "rounds_to_own_peak": ("rounds to\n95 % of it", "{:.1f}"),
    "seconds_to_own_peak": ("seconds", "{:.1f}"),
    "loss_roughness": ("roughness", "{:.3g}"),
    "update_cosine": ("cosine", "{:+.2f}"),
    "final_macro_f1": ("macro F1", "{:.3f}"),
    "final_roc_auc": ("AUC", "{:.3f}"),
    "bits_up": ("bits up", "{:.3g}"),
    "bits_down": ("bits down", "{:.3g}"),
}
"""Titles and formats of the measures of speed and smoothness up to a run's own peak, and of its bits, by measure."""
_DIFFERENCES = {
    name: (title, form.replace("+", "").replace(":", ":+"))
    for name, (title, form) in (TIMING | LEARNING | PARTICIPATION).items()
}
_MOST_NAMED = 3
_TITLES = {"rounds_to_target": "Rounds to accuracy {:g}", "final_accuracy": "Final accuracy"}


def print_comparison(folder: Path, console: Console) -> None:
    """Print the differences of a study's policies from its reference, a table per measure; nothing without accuracies.

    Runs are paired by seed.
    """
    study = read_study(folder)
    table = differences_table(folder, "policy", study.reference)
    outcomes = [name for name in OUTCOMES if (table["measure"] == name).any()]
    if not outcomes:
        return
    varied = _varied(table, "policy")
    for name in outcomes:
        title = f"{_TITLES[name].format(study.target)}: difference to {study.reference}"
        shown = bare_table(title, varied, ("pairs", "difference", "p"))
        shown.add_column("reading", no_wrap=True)
        add_in_sections(shown, table[table["measure"] == name], varied, functools.partial(_compared_cells, name))
        print_whole(console, shown)
    _print_notes(table, varied, console)


def print_differences(
    table: pd.DataFrame, reference: str, console: Console, looks: Mapping[str, tuple[str, str]] = _DIFFERENCES
) -> None:
    """Print paired differences to a reference, as `edgesim.analysis.differences.summarise_differences` gives them.

    One row per combination of knobs and one column per measure of ``looks``, which has its title and format; measures
    in which no pair differs are named below.
    """
    knobs = list(table.columns[: table.columns.get_loc("measure")])
    varied = _varied(table)
    present = [name for name in looks if (table["measure"] == name).any()]
    differing = table[table["differing"] > 0]
    measures = [name for name in present if (differing["measure"] == name).any()] or present
    title = f"Differences to {reference}, seed by seed: mean ± 95 % t interval over {span(table['pairs'], 'seeds')}"
    shown = bare_table(title, varied, [looks[name][0] for name in measures])
    for key, rows in table.groupby(knobs, sort=False, dropna=False):
        of = {row["measure"]: row for row in rows.to_dict("records")}
        values = dict(zip(knobs, key, strict=True))
        cells = [_marked(of[name], looks[name][1]) if name in of else "" for name in measures]
        shown.add_row(*(plain(values[knob]) for knob in varied), *cells)
    print_whole(console, shown)
    console.print("*: significant (p below 0.05); =: equivalent or identical; else inconclusive.", highlight=False)
    if len(measures) < len(present):
        same = [looks[name][0].replace("\n", " ") for name in present if name not in measures]
        console.print(f"The same in all pairs: {', '.join(same)}.", highlight=False)
    _print_notes(table, varied, console)


def _varied(table: pd.DataFrame, always: str | None = None) -> list[str]:
    """The knobs of a table of differences that vary in it, and one that is always shown; at least one."""
    knobs: Sequence[str] = list(table.columns[: table.columns.get_loc("measure")])
    return [knob for knob in knobs if table[knob].nunique(dropna=False) > 1 or knob == always] or list(knobs[:1])


def _marked(row: Mapping[Any, Any], form: str) -> str:
    marks = {"equivalent": " =", IDENTICAL: " =", "inconclusive": "  ", "": "  "}
    return difference_text(row, form) + marks.get(row["reading"], " *")


def _compared_cells(name: str, row: Mapping[Any, Any]) -> tuple[str, str, str, str]:
    """Cells of a row in a measure: pairs, difference, p value and reading."""
    return str(row["pairs"]), difference_text(row, _DIFFERENCES[name][1]), p_value(row["p_holm"]), row["reading"]


def difference_text(row: Mapping[Any, Any], form: str) -> str:
    """A difference with its interval; where a run never reached the target, a ratio of times with its interval."""
    if not row["never"] and row["reading"] != IDENTICAL:
        return with_interval({"": row["difference"], "_high": row["high"]}, "", form)
    return f"{effect_text(row, form)} {ends_text(row)}".rstrip()


def effect_text(row: Mapping[Any, Any], form: str) -> str:
    """A difference, or where a run never reached the target the ratio of times up to tau, such as x1.8 (to 30)."""
    return f"x{row['ratio']:.3g} (to {row['tau']:.4g})" if row["never"] else number(row["difference"], form)


def ends_text(row: Mapping[Any, Any], kind: str = "") -> str:
    """The ends of the interval of a difference or of a ratio; of the corrected one for the kind ``_holm``.

    Empty where there is none, and where both choices made the same runs.
    """
    before = "ratio_" if row["never"] else ""
    low, high = row[f"{before}low{kind}"], row[f"{before}high{kind}"]
    return "" if pd.isna(low) or row["reading"] == IDENTICAL else f"[{low:.4g}, {high:.4g}]"


def restricted_note(table: pd.DataFrame) -> list[str]:
    """Note on how to read a ratio of restricted times; empty where all runs reached the target."""
    restricted = table[table["never"] > 0]
    if restricted.empty:
        return []
    first = restricted.iloc[0]
    tau = f"{first['tau']:.4g}"
    return [
        f"{effect_text(first, '')}: a run of some pair never reached the target, so that times are compared up to the "
        f"shortest one to which all these runs were tested ({tau}): the ratio of min(t, {tau}), by the paired t test "
        "of logarithms. With five seeds it finds little: a ratio of 2.2 in a fifth of the studies, among seven "
        "comparisons in one of twenty (docs/compare.md)."
    ]


def spreads_note(table: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Note on comparisons, named by columns, with spreads so unlike that p may be too small; empty for none."""
    rows = table[table["unlike_spreads"] > UNLIKE_SPREADS].sort_values("unlike_spreads", ascending=False)
    if rows.empty:
        return []
    named = [f"{row['measure']} of {', '.join(plain(row[name]) for name in names)}"
            for row in rows.head(_MOST_NAMED).to_dict("records")]  # fmt: skip
    more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
    return [
        f"One choice spreads more than {UNLIKE_SPREADS:g} times as much over seeds as the other in {'; '.join(named)}"
        f"{more}: where its results are skewed, p is too small (docs/compare.md); look at the runs."
    ]


def readings_note(table: pd.DataFrame) -> list[str]:
    """Note on p, with the number of comparisons that it is corrected for, and on the readings of a table."""
    notes, tests = [], int(table["alpha"].notna().sum())
    if tests:
        which = f"all {tests} comparisons" if tests > 2 else "both comparisons" if tests > 1 else "one comparison"
        if tests < len(table):
            which = f"the {tests} of {len(table)} comparisons in which a pair differs"
        notes.append(f"p: paired t test over seeds, corrected by Holm for {which}; intervals are not corrected.")
    if (table["reading"] == "equivalent").any():
        margins = (
            f"{MARGIN_SHARE:.0%} of the reference's mean (accuracy and other shares: one point, {MARGIN_POINTS:g})"
        )
        notes.append(f"equivalent: the interval lies within {margins}.")
    if (table["reading"] == IDENTICAL).any():
        notes.append("identical: both made the same runs.")
    return [" ".join(notes)] if notes else []


def _print_notes(table: pd.DataFrame, varied: Sequence[str], console: Console) -> None:
    for note in readings_note(table) + restricted_note(table) + spreads_note(table, varied):
        console.print(note, highlight=False)
