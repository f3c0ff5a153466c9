"""Reads a capacity table: CSV or Parquet with the columns t_s, bps, named by ``[capacity]`` of an environment file.

If a file holds several tables, its column ``trace`` names the table of each row.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.needs import GIVEN, Rule
from edgesim.base.table_file import numbers_of, read_columns, refuse_rows
from edgesim.base.validation import validate
from edgesim.config import LinksConfig
from edgesim.radio.capacity import CapacityTables, one_capacity_table

Rows = tuple[Floats, Floats]
"""Times in s and capacities in bit/s, [m] each."""

COLUMNS = ("t_s", "bps")
TRACE = "trace"


class CapacityKeys(LinksConfig):
    """The keys of ``[capacity]``: as for recorded links, with the ``file`` relative to the environment file."""

    goes_with: ClassVar[tuple[Rule, ...]] = (
        *LinksConfig.goes_with,
        Rule({"after_end": None}, {"end_s": GIVEN}, "the instant at which the last row ends, or after_end = 'hold'"),
        Rule({"after_end": "wrap"}, {"end_s": GIVEN}),
    )

    trace: str | None = None
    """Name of the table, for a file that holds several."""


def read_capacity(table: Any, environment: Path) -> CapacityTables:
    """Read the table of ``[capacity]`` in an environment file (``table``); other columns are ignored.

    Raises `EdgesimError` that names the environment file and the key, or the table's file, the line (CSV, the
    header is line 1) or row (Parquet, from 1), the column and what was expected.
    """
    if not isinstance(table, dict):
        raise EdgesimError(f"{environment}: capacity: expected a table [capacity] with file and end_s or after_end")
    keys = validate(CapacityKeys, table, f"{environment}: capacity")
    path = environment.parent / keys.file
    if not path.is_file():
        raise EdgesimError(f"{environment}: capacity: file: no file {str(path)!r}; give a path from this file's folder")
    t_s, bps = _chosen(read_capacity_rows(path), keys.trace, path, environment)
    if keys.end_s is not None and keys.end_s <= t_s[-1]:
        raise EdgesimError(
            f"{environment}: capacity: end_s: expected an instant after the start of the last row of {path.name}, "
            f"{t_s[-1]:g} s (got {keys.end_s:g})"
        )
    until_s = np.inf if keys.end_s is None else keys.end_s
    return one_capacity_table(str(path), t_s, bps, until_s, wraps=keys.after_end == "wrap")


def _chosen(tables: dict[str, Rows], trace: str | None, path: Path, environment: Path) -> Rows:
    """The table named ``trace``, or the only one if ``trace`` is None."""
    if trace is None and len(tables) == 1:
        return next(iter(tables.values()))
    if trace not in tables:
        raise EdgesimError(
            f"{environment}: capacity: trace: expected one of the traces of {path.name}: {', '.join(tables)} "
            f"(got {trace!r})"
        )
    return tables[trace]


def read_capacity_rows(path: Path) -> dict[str, Rows]:
    """Read and check times and capacities by trace, in the file's order; key '' for a file without a column trace.

    Raises `EdgesimError` that names the file and the first line or row that breaks a rule.
    """
    frame = read_columns(path, COLUMNS, optional=(TRACE,), text=(TRACE,))
    if TRACE not in frame:
        _, t_s, bps = checked_rows(path, frame, np.zeros(len(frame), dtype=np.int64))
        return {"": (t_s, bps)}
    group, names = pd.factorize(frame[TRACE].astype(str))
    _, t_s, bps = checked_rows(path, frame, group, TRACE)
    ends = np.cumsum(np.bincount(group))[:-1]
    tables = zip(np.split(t_s, ends), np.split(bps, ends), strict=True)
    return {str(name): rows for name, rows in zip(names, tables, strict=True)}


def checked_rows(path: Path, frame: pd.DataFrame, group: Integers, kind: str = "") -> tuple[Integers, Floats, Floats]:
    """Order of a table's rows by ``group`` [m], and times and capacities in that order, [m] each.

    ``kind`` is the name of the column by which rows are grouped, for messages. Raises `EdgesimError` for the first row
    that breaks a rule.
    """
    whose = f"{kind}'s " if kind else ""
    order = np.argsort(group, kind="stable")
    t_s, bps = (numbers_of(frame[name])[order] for name in COLUMNS)
    same = np.append(False, np.diff(group[order]) == 0)
    dry = np.bincount(np.cumsum(~same) - 1, bps > 0)[np.cumsum(~same) - 1] == 0
    rules = [
        ("t_s", ~np.isfinite(t_s), "a finite number"),
        ("bps", ~np.isfinite(bps), "a finite number"),
        ("bps", bps < 0, "bit/s, 0 or more"),
        ("t_s", ~same & (t_s != 0), f"0 in the {whose}first row; count the times from there"),
        ("t_s", same & (t_s <= np.roll(t_s, 1)), f"a later time than in the {whose}row before"),
        ("bps", dry, f"at least one {whose}row above 0; no upload would ever end"),
    ]
    for column, broken, expected in rules:
        refuse_rows(path, frame, column, broken, expected, order)
    return order, t_s, bps
