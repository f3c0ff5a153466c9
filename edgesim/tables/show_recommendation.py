"""Tables on the terminal of the recommended choice in each place, and of how far the others are behind."""

from typing import Any

import pandas as pd
from rich.console import Console

from edgesim.analysis.recommendation import UNDISTINGUISHED
from edgesim.analysis.statistics import LEVEL, too_few
from edgesim.plots.groups import quantity
from edgesim.tables.table_text import bare_table, number, p_value, print_whole

_AMOUNTS = {"seconds": ("{:g} s", 1.0), "bits": ("{:,.2f} Mbit", 1e-6), "joules": ("{:.0f} J", 1.0)}
"""Format, and factor from SI, of amounts of each of `edgesim.analysis.spending.COSTS`."""
_HEADINGS = ("rounds", "sent up", "energy", "accuracy (%)", "at equal bits", "at equal joules", "behind (points)", "p")


def print_recommendation(
    scores: pd.DataFrame, standings: pd.DataFrame, recommended: pd.DataFrame, place: str, choice: str, console: Console
) -> None:
    """Print which choice to take in each place at each cost, and below it the standings at equal seconds.

    ``scores`` as from `edgesim.analysis.spending.scores` with the one knob ``place``, the others as from
    `edgesim.analysis.recommendation` with the places (``place``, ``cost``).
    """
    budgets = scores.groupby([place, "cost"])["budget"].first()
    shown = bare_table(
        f"Which {choice} to take", [quantity(place).name, "at equal", "take", "not ruled out", "ruled out"], ["budget"]
    )
    for row in recommended.to_dict("records"):
        budget = _amount(row["cost"], budgets[row[place], row["cost"]])
        left = row["left"] if row["take"] == UNDISTINGUISHED else ""
        shown.add_row(_where(place, row[place]), row["cost"], row["take"], left, row["ruled_out"], budget)
    print_whole(console, shown)
    _print_standings(scores, standings[standings["cost"] == "seconds"], place, choice, console)
    console.print(
        "Accuracy: mean over the last tenth of the budget, ± 95 % t interval over seeds. Ruled out: another "
        f"{choice} is better by the paired t test, p < {1 - LEVEL:.2g} after Holm's correction for all pairs in all "
        "rows of the first table. Behind: what a row lacks against the first of its section, with the interval at the "
        f"level at which its p was judged. *: ruled out, by the first or by another {choice}.",
        highlight=False,
    )
    if few := too_few(standings["low"].to_numpy(), standings["high"].to_numpy()):
        console.print(few, highlight=False)


def _print_standings(scores: pd.DataFrame, standings: pd.DataFrame, place: str, choice: str, console: Console) -> None:
    spent = scores.groupby([place, choice, "cost"])[["spent", "rounds", "value"]].mean()
    shown = bare_table("Standings at equal seconds", [quantity(place).name, choice], _HEADINGS)
    previous: Any = None
    for row in standings.to_dict("records"):
        if previous not in (None, row[place]):
            shown.add_section()
        previous = row[place]
        of = spent.loc[row[place], row[choice]]
        interval = number(100 * (row["high"] - row["value"]), " ± {:.1f}")
        behind = number(100 * row["behind"], "{:.1f}")
        if behind and not pd.isna(row["behind_low"]):
            behind += f" [{100 * row['behind_low']:.1f}, {100 * row['behind_high']:.1f}]"
        shown.add_row(
            _where(place, row[place]),
            row[choice],
            f"{of.loc['seconds', 'rounds']:.1f}",
            *(_amount(cost, of.loc[cost, "spent"]) for cost in ("bits", "joules")),
            f"{100 * row['value']:.1f}{interval}",
            *(f"{100 * of.loc[cost, 'value']:.1f}" for cost in ("bits", "joules")),
            behind,
            p_value(row["p_holm"]) + (" *" if row["ruled_out_by"] else "  "),
        )
    print_whole(console, shown)


def _where(place: str, value: float | str) -> str:
    """A value of a knob with its unit; a text as it is."""
    if isinstance(value, str):
        return value
    what = quantity(place, value)
    return f"{value * what.factor:g} {what.unit}"


def _amount(cost: str, value: float) -> str:
    """An amount of a cost with its unit."""
    form, factor = _AMOUNTS[cost]
    return form.format(value * factor)
