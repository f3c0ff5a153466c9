"""The spread over seeds in figures: from how many seeds on it is drawn, and the note about it."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from edgesim.analysis.statistics import Interval, mean_interval
from edgesim.plots.groups import Panel

LEAST_SEEDS = 3
"""Of two values the t interval is 12.7 standard errors wide to each side, which says nothing about the quantity."""


def drawn_interval(values: ArrayLike) -> Interval:
    """Mean of [n] values with its 95 % t interval; the ends are NaN for fewer than `LEAST_SEEDS`."""
    return mean_interval(values, LEAST_SEEDS)


def draw_means(
    axes: Axes, places: ArrayLike, bands: Sequence[Interval], *, banded: bool, steps: bool = False, **line: Any
) -> Line2D:
    """Draw the means at places [p] as a line and, where ``banded``, their intervals; ``steps`` hold until the next."""
    (drawn,) = axes.plot(places, [band.mean for band in bands], drawstyle="steps-post" if steps else "default", **line)
    if banded:
        low, high = [band.low for band in bands], [band.high for band in bands]
        step: Any = "post" if steps else None
        axes.fill_between(places, low, high, color=line["color"], alpha=0.2, linewidth=0, step=step)
    return drawn


def spread_note(panels: Sequence[Panel], spread: str = "95 % interval") -> str:
    """Note below an axis label about the mean over seeds and its spread; empty if each series is one run."""
    seeds = {len(series.runs) for panel in panels for series in panel.series}
    if max(seeds) == 1:
        return ""
    if max(seeds) < LEAST_SEEDS:
        return f"\nmean of {max(seeds)} seeds"
    return f"\nmean, {spread}" if min(seeds) >= LEAST_SEEDS else f"\nmean, {spread} from {LEAST_SEEDS} seeds on"
