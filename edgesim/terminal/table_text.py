"""Formats of values in tables on the terminal, and tables that a narrow terminal does not cut off."""

from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table


def print_whole(console: Console, table: Table) -> None:
    """Print a table in its full width: on a narrow terminal its lines wrap, but nothing is cut off."""
    wide = console.options.update(width=10_000)
    least = Measurement.get(console, wide, table).maximum
    if least > console.width:
        # The console bounds the width of what it prints, but not that of a table with a width of its own.
        table.width = least
    console.print(table, crop=False)


def bare_table(title: str) -> Table:
    """An empty table with a rule below its headings and no frame."""
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)


def plain(value: Any) -> str:
    """A knob's value."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def number(value: Any, form: str) -> str:
    """A number in a format; empty for nan."""
    return "" if value is None or pd.isna(value) else form.format(value)


def span(counts: pd.Series, what: str) -> str:
    """Least and most of some counts as text: ``5 to 12 seeds``."""
    low, high = counts.min(), counts.max()
    return f"{high} {what}" if low == high else f"{low} to {high} {what}"
