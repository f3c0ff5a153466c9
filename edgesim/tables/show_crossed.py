"""Tables on the terminal of two knobs that are crossed, and which of them matters more."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from edgesim.analysis.crossed import Crossed
from edgesim.analysis.statistics import LEVEL, mean_interval
from edgesim.analysis.variance import SHARED_SEEDS
from edgesim.tables.show_differences import difference_text
from edgesim.tables.show_variance import variance_table
from edgesim.tables.table_text import bare_table, p_value, plain, print_whole


def print_crossed(crossed: Crossed, console: Console) -> None:
    """Print the comparisons of both knobs, the analysis of variance, and a sentence on which knob matters more."""
    shown = bare_table(
        f"Differences in {crossed.measure}, all corrected together",
        ["compared", *crossed.knobs, "against"],
        ["pairs", "difference", "corrected", "p", "reading"],
    )
    for knob, rows in crossed.differences.groupby("compared", sort=False):
        if knob != crossed.knobs[0]:
            shown.add_section()
        for row in rows.to_dict("records"):
            shown.add_row(
                row["compared"],
                *(plain(row[name]) for name in crossed.knobs),
                row["against"],
                str(row["pairs"]),
                difference_text(row, "{:+.3f}"),
                f"[{row['low_holm']:+.3f}, {row['high_holm']:+.3f}]",
                p_value(row["p_holm"]),
                row["reading"],
            )
    print_whole(console, shown)
    console.print(
        "p: paired t test over seeds, corrected by Holm for all rows in which a pair differs; corrected: the interval "
        "at the level at which p was judged; ±: 95 %.",
        highlight=False,
    )
    print_whole(console, variance_table(crossed.measure, crossed.variance))
    console.print(SHARED_SEEDS, highlight=False)
    console.print(answer(crossed), highlight=False)


def answer(crossed: Crossed) -> str:
    """Sentence on which of the two knobs matters more."""
    spreads = []
    for knob in crossed.knobs:
        spread = mean_interval(crossed.spreads[knob])
        spreads.append(f"{spread.mean:.4f} ± {spread.high - spread.mean:.4f} between values of {knob}")
    measured = f"Standard deviation of {crossed.measure} in a seed: {' and '.join(spreads)}"
    row: Mapping[Any, Any] = crossed.answer
    facts = f"difference {row['difference']:.4f}, 95 % [{row['low']:.4f}, {row['high']:.4f}], p = {row['p']:.2g}, n = "
    facts += str(row["pairs"])
    if row["p"] < 1 - LEVEL:
        return f"{measured}: {crossed.knobs[0] if row['difference'] > 0 else crossed.knobs[1]} matters more ({facts})."
    return f"{measured}: neither is shown to matter more ({facts})."
