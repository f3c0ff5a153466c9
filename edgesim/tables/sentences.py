"""A plain sentence for a comparison: what is significant, how sure that is, and how many seeds it would take."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from edgesim.analysis.differences import IDENTICAL, WORDS
from edgesim.analysis.judgement import UNLIKE_SPREADS

_CLAIMS = {
    "scheduled": ("schedules fewer clients a round than", "schedules more clients a round than"),
    "arrived": ("has fewer updates a round arrive than", "has more updates a round arrive than"),
    "rounds_to_target": ("needs fewer rounds than", "needs more rounds than"),
    "seconds_to_target": ("reaches the target sooner than", "reaches the target later than"),
    "joules_to_target": ("takes less energy to the target than", "takes more energy to the target than"),
    "final_accuracy": ("is less accurate in the end than", "is more accurate in the end than"),
}
"""Claims about the first of two choices for a negative and a positive difference, by measure."""


def sentence(row: Mapping[Any, Any], where: str = "") -> str:
    """A row of `edgesim.analysis.compare.Compared.table` as a sentence; ``where`` says in which place."""
    choice, other, name = row["choice"], row["against"], row["measure"]
    facts = f"({_facts(row)}{_past(row)})"
    place = f"At {where}: " if where else ""
    if row["reading"] == IDENTICAL:
        return f"{place}{choice} and {other} made the same runs, with the same {name} (n = {row['pairs']})."
    below, above = _CLAIMS.get(name, (f"has a lower {name} than", f"has a higher {name} than"))
    if row["reading"] == "equivalent":
        return f"{place}{choice} and {other} are equivalent in {name} {facts}."
    if row["reading"] in WORDS.get(name, ("lower", "higher")):
        downwards = row["ratio"] < 1 if row["never"] else row["difference"] < 0
        return f"{place}{choice} {below if downwards else above} {other} {facts}."
    claim = f"{place}the difference of {choice} and {other} in {name} is inconclusive with {row['pairs']} seeds {facts}"
    return f"{claim}{_advice(row)}."


def _facts(row: Mapping[Any, Any]) -> str:
    p = f"p = {row['p_holm']:.2g}" if row["p_holm"] >= 1e-4 else "p < 0.0001"
    names = ("ratio", "ratio_low", "ratio_high") if row["never"] else ("difference", "low", "high")
    effect, low, high = (f"{row[name]:.3g}" for name in names)
    what = f"ratio {effect} of times up to {row['tau']:.4g}" if row["never"] else f"difference {effect}"
    wide = f"; one spreads {_times(row['unlike_spreads'])} the other" if row["unlike_spreads"] > UNLIKE_SPREADS else ""
    return f"{what}, 95 % [{low}, {high}], {p} corrected, n = {row['pairs']}{_never(row)}{wide}"


def _never(row: Mapping[Any, Any]) -> str:
    return f"; in {row['never']} a run never reached the target" if row["never"] else ""


def _times(ratio: float) -> str:
    return "infinitely more than" if np.isinf(ratio) else f"{ratio:.2g} times as much as"


def _past(row: Mapping[Any, Any]) -> str:
    """Note on the common past of forks, in which choices cannot differ; empty without one."""
    rounds = row.get("common_past_rounds", 0)
    return f"; the same until the end of round {rounds}" if rounds else ""


def _advice(row: Mapping[Any, Any]) -> str:
    """Number of seeds that detecting ``detect`` takes, as text; never that of the difference observed."""
    needed = row["seeds_needed"]
    if np.isnan(needed):
        return ""
    seeds = "more than 100,000" if np.isinf(needed) else f"about {needed:,.0f}"
    effect = f"ratio of {row['detect']:.4g}" if row["never"] else f"difference of {row['detect']:.3g}"
    return f"; to detect a {effect} takes {seeds} seeds"
