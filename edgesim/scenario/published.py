"""Measures of a study beside numbers that a paper published: ours with 95 % t intervals, the paper's as they are."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edgesim.analysis.differences import summarise_differences
from edgesim.analysis.fairness import effective_devices, participations
from edgesim.analysis.measures import TO_TARGET, Measures, measure
from edgesim.analysis.pairing import comparisons, pairings
from edgesim.analysis.runs import RunFolder, read_study
from edgesim.analysis.statistics import mean_interval
from edgesim.analysis.summary import summarise
from edgesim.screen.console import PlainConsole
from edgesim.tables.show import mean_text
from edgesim.tables.show_differences import print_differences
from edgesim.tables.table_text import bare_table, number, plain, print_whole, with_interval

__all__ = [
    "Looks",
    "beside",
    "devices_used",
    "differences",
    "groups",
    "mean_interval",
    "measure",
    "show",
    "show_differences",
    "shown_knobs",
]

Looks = Mapping[str, tuple[str, str]]
"""Heading and format of each measure."""


def groups(folder: Path) -> list[tuple[dict[str, Any], list[RunFolder]]]:
    """Every row of a study's summary that has finished runs, and these; raises `EdgesimError`."""
    study = read_study(folder)
    names = study.knob_names
    finished: dict[tuple[Any, ...], list[RunFolder]] = {}
    for run in study.finished:
        finished.setdefault(tuple(run.knobs.get(name) for name in names), []).append(run)
    rows = [{str(name): value for name, value in row.items()} for row in summarise(folder).to_dict("records")]
    keys = [tuple(None if pd.isna(row[name]) else row[name] for name in names) for row in rows]
    return [(row, finished[key]) for row, key in zip(rows, keys, strict=True) if key in finished]


def beside(
    folder: Path,
    measures: Sequence[str],
    published: Callable[[Mapping[str, Any]], Mapping[str, float]],
    own: Callable[[RunFolder], Measures] = lambda run: {},
    further: Sequence[str] = (),
) -> pd.DataFrame:
    """One row per combination of a study's knobs that has a finished run; raises `EdgesimError`.

    Columns: the knobs; ``seeds``; ``further`` columns of the summary; and of each measure its mean over seeds, with
    ``_low`` and ``_high`` (95 % t interval) and ``_paper``, what is ``published`` for a row. A measure is what ``own``
    says of a run, else the summary's. What a row does not have is NaN.
    """
    knobs, rows = read_study(folder).knob_names, []
    for row, runs in groups(folder):
        line = {name: row.get(name, np.nan) for name in [*knobs, "seeds", *further]}
        theirs, ours = published(row), [own(run) for run in runs]
        for name in measures:
            ends = (name, f"{name}_low", f"{name}_high")
            if any(name in of for of in ours):
                line |= zip(ends, mean_interval([of[name] for of in ours if name in of]), strict=True)
            else:
                line |= {end: row.get(end, np.nan) for end in ends}
            line[f"{name}_paper"] = theirs.get(name, np.nan)
        rows.append(line)
    return pd.DataFrame(rows)


def differences(
    folder: Path, knob: str, reference: str, measures: Sequence[str], own: Callable[[RunFolder], Measures]
) -> pd.DataFrame:
    """Differences of a knob's other values from the ``reference``, seed by seed, in what ``own`` says of a run.

    All are corrected together; a table as from `edgesim.analysis.differences.summarise_differences`.
    """
    finished = read_study(folder).finished
    of = {run.folder: own(run) for run in finished}
    return summarise_differences(comparisons(pairings(finished, knob, reference), measures, lambda run: of[run.folder]))


def devices_used(run: RunFolder) -> float:
    """Number of equally used devices that would be as uneven as the run's: `effective_devices` of its updates."""
    return effective_devices(participations(run.updates, run.devices))


def shown_knobs(table: pd.DataFrame, compared: str) -> tuple[str, list[str]]:
    """The values of the knobs that do not vary, as text; the names of those that do, with the ``compared`` one last."""
    knobs = [name for name in table.columns[: table.columns.get_loc("seeds")] if name != compared]
    varied = [name for name in knobs if table[name].nunique() > 1]
    same = ", ".join(f"{name} {plain(table[name].iloc[0])}" for name in knobs if name not in varied)
    return same, [*varied, compared]


def show(
    table: pd.DataFrame, title: str, knobs: Sequence[str], looks: Looks, sections: Sequence[str] = (), note: str = ""
) -> None:
    """Print the knobs and measures of a table as from `beside`, and a ``note`` below it.

    Left out are measures and the paper's numbers of them where no row has any, and intervals where the table has no
    columns of them. Rows that are equal in the knobs of ``sections`` stand together between rules.
    """
    missed = "not_reached" in table and (table["not_reached"] > 0).any()
    names = [name for name in looks if table[name].notna().any() or (name in TO_TARGET and missed)]
    papers = [name for name in names if f"{name}_paper" in table and table[f"{name}_paper"].notna().any()]
    headings = [text for name in names for text in [looks[name][0]] + ["paper"] * (name in papers)]
    shown, console = bare_table(title, knobs, headings), PlainConsole()
    parts = [rows for _, rows in table.groupby(list(sections), sort=False)] if sections else [table]
    for place, rows in enumerate(parts):
        if place:
            shown.add_section()
        for row in rows.to_dict("records"):
            cells = [plain(row[knob]) for knob in knobs]
            for name in names:
                form = looks[name][1]
                cells += [_ours(row, name, form)] + ([number(row[f"{name}_paper"], form)] if name in papers else [])
            shown.add_row(*cells)
    print_whole(console, shown)
    if note:
        console.print(note, highlight=False)


def show_differences(table: pd.DataFrame, reference: str, looks: Looks) -> None:
    """Print a table as from `differences` with signs before its numbers; nothing of an empty one."""
    if len(table):
        signed = {name: (title, form.replace("{:", "{:+")) for name, (title, form) in looks.items()}
        print_differences(table, reference, PlainConsole(), signed)


def _ours(row: Mapping[Any, Any], name: str, form: str) -> str:
    if name in TO_TARGET:
        return mean_text(row, name, form)
    return with_interval(row, name, form) if f"{name}_high" in row else number(row[name], form)
