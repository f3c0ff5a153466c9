"""Formats of values in tables on the terminal, and tables that a narrow terminal does not cut off."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from edgesim.analysis.runs import value_text

USUAL_WIDTH = 100
"""Columns of a terminal in which tables fit where they can."""


def width(table: Table) -> int:
    """Columns that a table takes in its full width."""
    console = Console(width=10_000)
    return Measurement.get(console, console.options, table).maximum


def print_whole(console: Console, table: Table) -> None:
    """Print a table in its full width: on a narrow terminal its lines wrap, but nothing is cut off."""
    least = width(table)
    if least > console.width:
        # The console bounds the width of what it prints, but not that of a table with a width of its own.
        table.width = least
    console.print(table, crop=False)


def bare_table(title: str, names: Sequence[str], measures: Iterable[str], rows: Iterable[Iterable[str]] = ()) -> Table:
    """A table without a frame, with a rule below the headings of texts (``names``) and numbers (``measures``)."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for name in names:
        table.add_column(name, no_wrap=True)
    for measure in measures:
        table.add_column(measure, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def add_in_sections(
    table: Table, rows: pd.DataFrame, knobs: Sequence[str], cells: Callable[[Mapping[Any, Any]], Iterable[str]]
) -> None:
    """Add a row of knobs and ``cells`` for each of ``rows``; a rule stands where a knob other than the policy changes.

    Without a policy among the knobs there are no rules.
    """
    others = [knob for knob in knobs if knob != "policy"]
    previous = None
    for row in (rows.sort_values(others, kind="stable") if others else rows).to_dict("records"):
        section = tuple(row[knob] for knob in others)
        if previous is not None and section != previous and "policy" in knobs:
            table.add_section()
        previous = section
        table.add_row(*(plain(row[knob]) for knob in knobs), *cells(row))


def plain(value: Any) -> str:
    """A knob's value; empty for nan."""
    return "" if isinstance(value, float) and np.isnan(value) else value_text(value)


def number(value: Any, form: str) -> str:
    """A number in a format; empty for nan."""
    return "" if value is None or pd.isna(value) else form.format(value)


def with_interval(row: Mapping[Any, Any], name: str, form: str) -> str:
    """A measure of a row as ``0.81 ± 0.02``, or the mean alone where it has no interval."""
    half = row[f"{name}_high"] - row[name]
    return number(row[name], form) + ("" if pd.isna(half) else f" ± {number(half, form.replace('+', ''))}")


def p_value(p: float) -> str:
    """A p-value; empty for nan."""
    return "<0.001" if p < 0.001 else number(p, "{:.3f}")


def span(counts: pd.Series, what: str) -> str:
    """Least and most of some counts as text: ``5 to 12 seeds``, ``1 seed``."""
    low, high = counts.min(), counts.max()
    return f"{high} {what.removesuffix('s') if high == 1 else what}" if low == high else f"{low} to {high} {what}"
