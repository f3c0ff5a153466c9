"""The spread over seeds in figures: from how many seeds on it is drawn, and the note about it."""

from collections.abc import Collection, Sequence

from numpy.typing import ArrayLike

from edgesim.analysis.statistics import Interval, mean_interval
from edgesim.plots.groups import Panel

LEAST_SEEDS = 3
"""Of two values the t interval is 12.7 standard errors wide to each side, which says nothing about the quantity."""


def drawn_interval(values: ArrayLike) -> Interval:
    """Mean of [n] values with its 95 % t interval; the ends are NaN for fewer than `LEAST_SEEDS`."""
    return mean_interval(values, LEAST_SEEDS)


def spread_note(panels: Sequence[Panel], spread: str = "95 % interval") -> str:
    """Note below an axis label about the mean over seeds and its spread; empty if each series is one run."""
    seeds = {len(series.runs) for panel in panels for series in panel.series}
    if max(seeds) == 1:
        return ""
    if max(seeds) < LEAST_SEEDS:
        return f"\nmean of {max(seeds)} seeds"
    return f"\nmean, {spread}" if min(seeds) >= LEAST_SEEDS else f"\nmean, {spread} from {LEAST_SEEDS} seeds on"


def mean_note(panels: Sequence[Panel]) -> str:
    """Note below an axis label that says of how many seeds lines are the means; empty if each series is one run."""
    return note_of_seeds({len(series.runs) for panel in panels for series in panel.series})


def note_of_seeds(seeds: Collection[int]) -> str:
    """Note below an axis label for means over these numbers of ``seeds``; empty if each is one run."""
    return f"\nmean of {counts_text(seeds)} seeds" if max(seeds) > 1 else ""


def counts_text(counts: Collection[int]) -> str:
    """The least and the greatest of some counts, ``3 to 5``, or the one that all are."""
    least, most = min(counts), max(counts)
    return f"{most}" if least == most else f"{least} to {most}"
