"""``edgesim compare``: does one value of a knob really beat another, how sure is that, how many seeds would it take?"""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

import edgesim
from edgesim.analysis.compare import knobs_text
from edgesim.analysis.judgement import EXACT
from edgesim.analysis.measures import NAMES
from edgesim.analysis.outcomes import COLUMNS
from edgesim.analysis.statistics import seeds_for_exact
from edgesim.analysis.variance import SHARED_SEEDS
from edgesim.base.errors import EdgesimError
from edgesim.screen.console import PlainConsole
from edgesim.screen.plain import plain_errors, say
from edgesim.tables.sentences import sentence
from edgesim.tables.show_differences import effect_text, ends_text, readings_note, restricted_note, spreads_note
from edgesim.tables.show_variance import variance_table
from edgesim.tables.table_files import TABLE_FORMAT_HELP, TableFormat, table_text
from edgesim.tables.table_text import bare_table, number, p_value, print_whole

_PAST = "common past"
_USUAL = ("reading", "pairs", "difference", "95 %", "corrected p", _PAST)
"""Columns that are shown without ``--wide``, beside those that name the comparison."""

_WIDE_NOTES = (
    "corrected: the interval at the level at which p was judged. d_z: mean over standard deviation of the "
    "differences; d_av: over the root mean of the two variances. seeds: how many it takes, with the spread of these, "
    "to find a difference of the size of detect significant at that level in 8 of 10 studies."
)

_MEASURES = [*NAMES, *COLUMNS]
EPILOG = f"Measures: {', '.join(_MEASURES)}; and names in the table metrics (means of the last rounds)."


@plain_errors
def compare_command(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN_OR_STUDY...", help="Run folders and study folders.")],
    metric: Annotated[
        list[str],
        typer.Option(
            help="A measure, see below; may be repeated.",
            autocompletion=lambda incomplete: [name for name in _MEASURES if name.startswith(incomplete)],
        ),
    ],
    by: Annotated[str, typer.Option(help="Knob whose values are compared.")] = "policy",
    reference: Annotated[
        str | None, typer.Option(help="Value that all others are compared with; by policy the study's, else every two.")
    ] = None,
    within: Annotated[
        list[str] | None, typer.Option(help="Knob at each value of which is compared separately; may be repeated.")
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Accuracy of what is to a target; the study's when absent.")
    ] = None,
    detect: Annotated[
        str | None,
        typer.Option(
            help="Difference that seeds are counted for, such as 0.02, or 5% of the mean of what is compared with; the "
            "margin of equivalence when absent."
        ),
    ] = None,
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns, also where lines wrap.")] = False,
    format_: Annotated[TableFormat, typer.Option("--format", help=TABLE_FORMAT_HELP)] = "table",
) -> None:
    """Say whether one value of a knob really beats another: paired tests over seeds, corrected for all comparisons."""
    if target is not None and not 0 < target <= 1:
        raise EdgesimError(f"--target {target:g}: expected an accuracy above 0 and at most 1")
    result = edgesim.compare(paths, metric, by, reference, within or [], target, detect)
    headings, rows = _cells(result, wide)
    if format_ == "table":
        _print(result, headings, rows, wide)
    else:
        say(table_text(format_, result.table, headings, rows).rstrip("\n"))


def _print(result: edgesim.Compared, headings: list[str], rows: list[list[str]], wide: bool) -> None:
    console = PlainConsole()
    knobs = _varying(result)
    cells = [dict(zip(headings, row, strict=True)) for row in rows]
    # What all rows have in common stands above the table, so that it fits a terminal.
    common = [name for name in ("measure", "against", "pairs") if not wide and len({row[name] for row in cells}) == 1]
    title = ", ".join(f"{name} {cells[0][name]}" for name in common)
    names = ["measure", *knobs, "choice", "against", "reading"]
    shown = [name for name in headings if name not in common]
    texts, numbers = ([name for name in shown if (name in names) == is_text] for is_text in (True, False))
    print_whole(console, bare_table(title, texts, numbers, ([row[name] for name in shown] for row in cells)))
    for test, row in zip(result.found, result.table.to_dict("records"), strict=True):
        place = {name: value for name, value in test.pairing.place.items() if name in knobs}
        console.print(sentence(row, knobs_text(place)))
    for name, table in result.variances.items():
        print_whole(console, variance_table(name, table))
    if result.variances:
        console.print(SHARED_SEEDS)
    tests = int(result.table["alpha"].notna().sum())
    for note in [*_notes(result.table, tests, [*knobs, "choice", "against"], wide), *result.notes]:
        console.print(note)


def _notes(table: pd.DataFrame, tests: int, names: list[str], wide: bool) -> list[str]:
    """Notes on how to read the table: its columns, runs that never reached the target, and doubtful results.

    ``names`` are the columns that name a comparison.
    """
    notes = readings_note(table) + [_WIDE_NOTES] * wide
    is_exact = bool((table["test"] == EXACT).any())
    # Where no comparison has a p value there is no test to speak of.
    if tests and (wide or is_exact):
        used = "Wilcoxon p" * wide + ", and " * (wide and is_exact) + "p where all differences are equal" * is_exact
        notes.append(
            f"{used}: of n seeds it cannot go below 2^(1 - n); below 0.05 among {tests} comparison{'s'[: tests != 1]} "
            f"it takes {seeds_for_exact(tests)} seeds."
        )
    return [*notes, *restricted_note(table), *spreads_note(table, names)]


def _varying(result: edgesim.Compared) -> list[str]:
    """Names of the knobs that have more than one value among the places of the comparisons."""
    places = [test.pairing.place for test in result.found]
    names = dict.fromkeys(name for place in places for name in place)
    return [name for name in names if any(place.get(name) != places[0].get(name) for place in places)]


def _cells(result: edgesim.Compared, wide: bool) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the printed table, without the knobs that have one value; `_USUAL` unless it is wide."""
    knobs = _varying(result)
    rows = []
    for test, row in zip(result.found, result.table.to_dict("records"), strict=True):
        place = {name: test.pairing.place[name] for name in knobs if name in test.pairing.place}
        cells = {name: knobs_text({name: place[name]}).partition(" = ")[2] if name in place else "" for name in knobs}
        past = row.get("common_past_rounds")
        rows.append(
            {"measure": row["measure"], **cells, "choice": row["choice"], "against": row["against"]}
            | {"reading": row["reading"], "pairs": str(row["pairs"]), "difference": effect_text(row, "{:+.4g}")}
            | {"95 %": ends_text(row), "corrected": ends_text(row, "_holm"), "p": p_value(row["p"])}
            | {"corrected p": p_value(row["p_holm"]), "Wilcoxon p": p_value(row["wilcoxon_p"])}
            | {"d_z": number(row["d_z"], "{:.2f}"), "d_av": number(row["d_av"], "{:.2f}")}
            | {"detect": number(row["detect"], "{:.3g}"), "seeds": number(row["seeds_needed"], "{:.0f}")}
            | {_PAST: f"until round {past}" if past else ""}
        )
    kept = ["measure", *knobs, "choice", "against", *_USUAL] if not wide else [*rows[0]]
    shown = [name for name in kept if name != _PAST or any(row[name] for row in rows)]
    return shown, [[row[name] for name in shown] for row in rows]
