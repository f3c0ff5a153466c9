"""Ends of the past that forks have in common with other runs, in figures over rounds and seconds."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from edgesim.analysis.accuracy_series import Over
from edgesim.analysis.runs import RunFolder

COMMON_PAST = "end of the common past"
"""Text of that line in legends."""
LOOK: dict[str, Any] = {"color": "#555555", "linestyle": ":", "linewidth": 0.9}
"""Style of the line where forks leave their common past."""


def past_text(runs: Iterable[RunFolder]) -> list[str]:
    """The legend's text for the line of `mark_past`; empty where none of the runs is a fork."""
    return [COMMON_PAST] if any(run.fork for run in runs) else []


def left_past(runs: Sequence[RunFolder], over: Over) -> set[float]:
    """Rounds after which forks leave the common past, or mean ends of these rounds in s; runs differ in seed alone."""
    forks = [(run, run.fork.round) for run in runs if run.fork]
    places = {}
    for round in {at for _, at in forks}:
        of = [run.rounds for run, at in forks if at == round]
        ends_s = [float(rounds.loc[rounds["round"] == round, "t_end_s"].iloc[0]) for rounds in of]
        places[round] = float(np.mean(ends_s))
    return {float(round) for round in places} if over == "rounds" else set(places.values())


def mark_past(axes: Axes, places: Collection[float]) -> Line2D | None:
    """Draw a dotted line at each place; returns one of them for the legend, None without places."""
    lines = [axes.axvline(place, zorder=1.5, **LOOK) for place in sorted(places)]
    return lines[-1] if lines else None
