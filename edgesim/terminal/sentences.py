"""A plain sentence for a comparison: what is told, how sure that is, and how many seeds it would take."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgesim.analysis.differences import WORDS

_CLAIMS = {
    "scheduled": ("schedules fewer clients a round than", "schedules more clients a round than"),
    "arrived": ("has fewer updates a round arrive than", "has more updates a round arrive than"),
    "rounds_to_target": ("needs fewer rounds than", "needs more rounds than"),
    "seconds_to_target": ("reaches the target sooner than", "reaches the target later than"),
    "joules_to_target": ("takes less energy to the target than", "takes more energy to the target than"),
    "final_accuracy": ("is less accurate in the end than", "is more accurate in the end than"),
}
"""What a negative and a positive difference of a measure say of the first of the two."""


def sentence(row: Mapping[Any, Any], where: str = "", wanted: float | None = None) -> str:
    """A row of `edgesim.analysis.compare.Compared.table` as a sentence; ``where`` says in which place.

    ``wanted`` is the difference that the seeds needed are counted for, the seen one when absent.
    """
    one, other, name = row["choice"], row["against"], row["measure"]
    facts = f"({_facts(row)}{_past(row)})"
    place = f"At {where}: " if where else ""
    below, above = _CLAIMS.get(name, (f"has a lower {name} than", f"has a higher {name} than"))
    if row["reading"] == "level":
        return f"{place}{one} and {other} are level in {name} {facts}."
    if row["reading"] in WORDS.get(name, ("lower", "higher")):
        downwards = row["below"] > row["above"] if row["never"] else row["difference"] < 0
        return f"{place}{one} {below if downwards else above} {other} {facts}."
    told = f"{place}{name} of {one} and {other} cannot be told apart with {row['pairs']} seeds {facts}"
    return f"{told}{_advice(row, wanted)}."


def _facts(row: Mapping[Any, Any]) -> str:
    p = f"p = {row['p_holm']:.2g}" if row["p_holm"] >= 1e-4 else "p < 0.0001"
    if row["never"]:
        below, above = WORDS.get(row["measure"], ("lower", "higher"))
        counts = f"{below} in {row['below']}, {above} in {row['above']}"
        return f"{counts} of {row['pairs']}; in {row['never']} a run never got there; sign test, {p} corrected"
    numbers = [f"{row[name]:.3g}" for name in ("difference", "low", "high")]
    return f"difference {numbers[0]}, 95 % [{numbers[1]}, {numbers[2]}], {p} corrected, n = {row['pairs']}"


def _past(row: Mapping[Any, Any]) -> str:
    """What forks have in common, which no choice can have made different."""
    rounds = row.get("common_past_rounds", 0)
    return f"; the same until the end of round {rounds}" if rounds else ""


def _advice(row: Mapping[Any, Any], wanted: float | None) -> str:
    needed = row["seeds_needed"]
    if np.isnan(needed) or (np.isinf(needed) and not row["difference"] and wanted is None):
        return ""
    seeds = "more than 100,000" if np.isinf(needed) else f"about {needed:,.0f}"
    return f"; {seeds} would do" + ("" if wanted is None else f" for a difference of {wanted:g}")
