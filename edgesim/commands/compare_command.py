"""``edgesim compare``: does one value of a knob really beat another, how sure is that, how many seeds would it take?"""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

import edgesim
from edgesim.analysis.compare import knobs_text
from edgesim.analysis.judgement import EXACT
from edgesim.analysis.statistics import seeds_for_exact
from edgesim.analysis.variance import SHARED_SEEDS
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import system_errors
from edgesim.folder.records import write_whole
from edgesim.screen.console import PlainConsole
from edgesim.screen.plain import plain_errors
from edgesim.tables.sentences import sentence
from edgesim.tables.show_differences import effect_text, ends_text, restricted_note, spreads_note
from edgesim.tables.show_variance import variance_table
from edgesim.tables.table_files import latex, markdown
from edgesim.tables.table_text import bare_table, number, p_value, print_whole

_PAST = "common past"

_NOTES = (
    "p: paired t test over seeds, corrected by Holm for all comparisons of the table in which a pair differs. "
    "corrected: the interval at the level at which p was judged. d_z: mean over standard deviation of the differences; "
    "d_av: over the root mean of the two variances. seeds: how many it takes, with the spread of these, to find a "
    "difference of the size of detect significant at that level in 8 of 10 studies."
)


@plain_errors
def compare_command(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN_OR_STUDY...", help="Run folders and study folders.")],
    metric: Annotated[
        list[str], typer.Option(help="A measure of summary.csv, test_loss, or a name in metrics; may be repeated.")
    ],
    by: Annotated[str, typer.Option(help="Knob whose values are compared, such as policy.")],
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
    csv: Annotated[Path | None, typer.Option(help="File for the table with all columns.")] = None,
    markdown_: Annotated[Path | None, typer.Option("--markdown", help="File for the table in Markdown.")] = None,
    latex_: Annotated[Path | None, typer.Option("--latex", help="File for the table in LaTeX.")] = None,
) -> None:
    """Say whether one value of a knob really beats another: paired tests over seeds, corrected for all comparisons."""
    if target is not None and not 0 < target <= 1:
        raise EdgesimError(f"--target {target:g}: expected an accuracy above 0 and at most 1")
    result = edgesim.compare(paths, metric, by, reference, within or [], target, detect)
    headings, rows = _cells(result)
    written = {csv: result.table.to_csv(index=False, lineterminator="\n"), markdown_: markdown(headings, rows),
               latex_: latex(headings, rows)}  # fmt: skip
    for path, text in written.items():
        if path is not None:
            with system_errors(f"{path}: cannot be written"):
                write_whole(path, text)
    _print(result, headings, rows)


def _print(result: edgesim.Compared, headings: list[str], rows: list[list[str]]) -> None:
    console = PlainConsole()
    knobs, texts = _varying(result), headings.index("pairs")
    print_whole(console, bare_table("", headings[:texts], headings[texts:], rows))
    for test, row in zip(result.found, result.table.to_dict("records"), strict=True):
        place = {name: value for name, value in test.pairing.place.items() if name in knobs}
        console.print(sentence(row, knobs_text(place)))
    for name, table in result.variances.items():
        print_whole(console, variance_table(name, table))
    if result.variances:
        console.print(SHARED_SEEDS)
    tests = int(result.table["alpha"].notna().sum())
    for note in [*_notes(result.table, tests, [*knobs, "choice", "against"]), *result.notes]:
        console.print(note)


def _notes(table: pd.DataFrame, tests: int, names: list[str]) -> list[str]:
    """Notes on how to read the table: its columns, runs that never reached the target, and doubtful results.

    ``names`` are the columns that name a comparison.
    """
    notes = [_NOTES]
    # Where no comparison has a p value there is no test to speak of.
    if tests:
        used = "Wilcoxon p, and p where all differences are equal" if (table["test"] == EXACT).any() else "Wilcoxon p"
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


def _cells(result: edgesim.Compared) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the printed table, without the knobs that have one value."""
    knobs = _varying(result)
    headings = ["measure", *knobs, "choice", "against", "reading", "pairs", "difference", "95 %", "corrected", "p"]
    headings += ["corrected p", "Wilcoxon p", "d_z", "d_av", "detect", "seeds", _PAST]
    rows = []
    for test, row in zip(result.found, result.table.to_dict("records"), strict=True):
        place = [knobs_text({name: test.pairing.place[name]}).partition(" = ")[2] if name in test.pairing.place else ""
                 for name in knobs]  # fmt: skip
        rows.append(
            [row["measure"], *place, row["choice"], row["against"], row["reading"], str(row["pairs"])]
            + [effect_text(row, "{:+.4g}"), ends_text(row), ends_text(row, "_holm")]
            + [p_value(row["p"]), p_value(row["p_holm"]), p_value(row["wilcoxon_p"])]
            + [number(row["d_z"], "{:.2f}"), number(row["d_av"], "{:.2f}")]
            + [number(row["detect"], "{:.3g}"), number(row["seeds_needed"], "{:.0f}")]
            + [f"until round {row['common_past_rounds']}" if row.get("common_past_rounds") else ""]
        )
    shown_columns = [i for i, name in enumerate(headings) if name != _PAST or any(row[i] for row in rows)]
    return [headings[i] for i in shown_columns], [[row[i] for i in shown_columns] for row in rows]
