"""Tables on the terminal of a study of AFL: its methods beside the paper's numbers, and against a reference."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from edgesim.analysis.afl import MEASURES
from edgesim.terminal.console import PlainConsole
from edgesim.terminal.table_text import bare_table, number, print_whole, with_interval

_HEADINGS = {
    "final_accuracy": ("accuracy", "{:.3f}"),
    "final_macro_f1": ("macro F1", "{:.3f}"),
    "final_roc_auc": ("AUC", "{:.3f}"),
    "rounds_to_own_peak": ("rounds to\n95 % of own peak", "{:.1f}"),
    "rounds_to_target": ("rounds to\nthe target", "{:.1f}"),
    "simulated_s": ("simulated\nseconds", "{:.0f}"),
    "gigabytes": ("GB", "{:.3g}"),
}


def print_beside_afl(beside: pd.DataFrame, reference: str) -> None:
    """Print a table as from `edgesim.analysis.afl.beside_afl`, and one of the differences to the reference."""
    console = PlainConsole()
    shown = [name for name in MEASURES if beside[name].notna().any()]
    papers = [name for name in shown if beside[f"{name}_paper"].notna().any()]
    headings = [text for name in shown for text in [_HEADINGS[name][0]] + ["paper"] * (name in papers)]
    table = bare_table("Mean ± 95 % t interval over seeds", ["skew", "method"], headings)
    for row in beside.to_dict("records"):
        cells = []
        for name in shown:
            reached = "" if name != "rounds_to_target" or row["reached"] == row["seeds"] else _of_all(row)
            cells.append(with_interval(row, name, _HEADINGS[name][1]) + reached)
            cells += [number(row[f"{name}_paper"], _HEADINGS[name][1])] * (name in papers)
        table.add_row(row["skew"], row["method"], *cells)
    print_whole(console, table)
    compared = beside[beside["method"] != reference]
    table = bare_table(
        f"Differences to {reference}, seed by seed", ["skew", "method"], [_HEADINGS[name][0] for name in shown]
    )
    for row in compared.to_dict("records"):
        table.add_row(row["skew"], row["method"], *(_difference(row, name) for name in shown))
    print_whole(console, table)
    told = "*: paired t test below 0.05, corrected by Holm for all rows of the column; else it cannot be told."
    if papers:
        told += " paper: data unnamed, so that only the order of its numbers can be compared."
    console.print(told, highlight=False)


def _of_all(row: Mapping[Any, Any]) -> str:
    return f" ({row['reached']} of {row['seeds']})"


def _difference(row: Mapping[Any, Any], name: str) -> str:
    form = _HEADINGS[name][1].replace("{:", "{:+")
    return with_interval(row, f"{name}_difference", form) + (" *" if row[f"{name}_p_holm"] < 0.05 else "  ")
