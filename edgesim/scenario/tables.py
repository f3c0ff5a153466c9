"""Tables that some studies print and write beside those of every study; CSV files lie in the study's folder."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from edgesim.analysis.convergence import growth_table
from edgesim.analysis.crossed import cross
from edgesim.analysis.kept_tests import KeptRun, kept_runs, merged, read_tests, study_tests, write_tests
from edgesim.analysis.participation import course, instability, windowed
from edgesim.analysis.recommendation import compare, recommend, stand
from edgesim.analysis.runs import is_study, read_study
from edgesim.analysis.savings import savings
from edgesim.analysis.spending import accuracy_within, scores, spending
from edgesim.base.paths import own_file
from edgesim.screen.console import PlainConsole
from edgesim.tables.show import mean_text, print_frame, print_skews
from edgesim.tables.show_crossed import print_crossed
from edgesim.tables.show_recommendation import print_recommendation
from edgesim.tables.table_text import print_whole
from edgesim.tables.trace_tables import anatomy_table
from edgesim.traces.session_statistics import Anatomy
from edgesim.tuning.ranking import ranked

__all__ = [
    "KeptRun",
    "accuracy_within",
    "all_tests",
    "anatomies",
    "course",
    "crossed",
    "growth",
    "instability",
    "is_study",
    "kept_runs",
    "mean_text",
    "ranked",
    "recommendation",
    "save",
    "savings",
    "show",
    "show_anatomies",
    "show_texts",
    "skews",
    "spending",
    "windowed",
    "write_tests",
]


def save(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV without its index; raises `EdgesimError` where the path leads out of its folder."""
    table.to_csv(own_file(path), index=False, lineterminator="\n")


def all_tests(path: Path, folders: Sequence[Path]) -> pd.DataFrame:
    """The tests in a file and those of the studies in some folders as one table, as `study_tests` says.

    Rows of a run that the file has as well are those of the folder. Folders without a study are left out, and the file
    is needed only where all are. Raises `EdgesimError`.
    """
    found = [study_tests(read_study(folder)) for folder in folders if is_study(folder)]
    before = [read_tests(path)] if path.exists() or not found else []
    return merged([*before, *found])


def show(table: pd.DataFrame, title: str, columns: Mapping[str, tuple[str, str]]) -> None:
    """Print the knobs that vary in a table, and its ``columns`` -> (heading, format)."""
    print_frame(table, title, columns, PlainConsole())


def skews(folder: Path) -> None:
    """Print how the devices' data sets differ, means over seeds for each combination of a study's knobs."""
    print_skews(folder, PlainConsole())


def growth(folder: Path) -> None:
    """Write ``growth.csv``: how the time of a round grows with the number of devices."""
    save(growth_table(read_study(folder).finished), folder / "growth.csv")


def crossed(folder: Path, first: tuple[str, str], second: tuple[str, str], measure: str) -> None:
    """Print and write two crossed knobs, each with its reference value: differences, and which knob matters more.

    Into ``crossed.csv`` and ``variance.csv``.
    """
    comparison = cross(read_study(folder), first, second, measure)
    save(comparison.differences, folder / "crossed.csv")
    save(comparison.variance, folder / "variance.csv")
    print_crossed(comparison, Console())


def recommendation(folder: Path, place: str, choice: str) -> None:
    """Print and write which value of the knob ``choice`` to take at each value of ``place`` at equal cost.

    Into ``scores.csv``, ``pairs.csv``, ``standings.csv`` and ``recommendation.csv``.
    """
    scored, places = scores(read_study(folder), [place], choice), [place, "cost"]
    pairs = compare(scored, places, choice)
    standings = stand(scored, pairs, places, choice)
    recommended = recommend(standings, places, choice)
    written = {"scores": scored, "pairs": pairs, "standings": standings, "recommendation": recommended}
    for name, table in written.items():
        save(table, folder / f"{name}.csv")
    print_recommendation(scored, standings, recommended, place, choice, Console())


def anatomies(traces: Mapping[str, Anatomy]) -> pd.DataFrame:
    """Statistics of availability traces as texts: a column with the names of the statistics, and one per trace."""
    table = anatomy_table(traces)
    return pd.DataFrame({str(column.header): list(column.cells) for column in table.columns})


def show_anatomies(path: Path) -> None:
    """Print a table as from `anatomies` that was saved as CSV."""
    saved = pd.read_csv(path, dtype=str, keep_default_na=False)
    show_texts(saved.rename(columns={saved.columns[0]: ""}), "availability", [""])


def show_texts(table: pd.DataFrame, title: str, words: Collection[str] = ()) -> None:
    """Print a table as it is, numbers with four places; the columns of ``words`` are set to the left."""
    shown = Table(title=title, title_justify="left")
    for name in table.columns:
        shown.add_column(name, justify="left" if name in words else "right", no_wrap=True)
    for row in table.itertuples(index=False):
        shown.add_row(*(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row))
    print_whole(Console(), shown)
