"""Staleness of the merged updates."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats, Integers
from edgesim.plots.groups import Panel, Series
from edgesim.plots.panel_figures import line_panels


def has_stale_updates(runs: Sequence[RunFolder]) -> bool:
    """Whether any update of any run started from an older model than the one it was merged into."""
    return any(bool((run.updates["staleness"] > 0).any()) for run in runs)


def draw_staleness(panels: Sequence[Panel]) -> Figure:
    """Share of the merged updates up to each staleness, all seeds of a series together."""
    with line_panels(panels, "share of updates") as drawn:
        for axes, panel in drawn.each:
            for series in panel.series:
                ages, shares = cumulative(series)
                look = drawn.styles[series.label]
                (drawn.lines[series.label],) = axes.step(
                    ages, shares, where="post", **look.marked(every=max(1, len(ages) // 6))
                )
            axes.set(ylim=(0, 1.02), xlabel="staleness (models)")
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlim(left=0)
    return drawn.figure


def cumulative(series: Series) -> tuple[Integers, Floats]:
    """Stalenesses from 0 to the largest, and the share of a series' updates that are at most as stale."""
    ages = np.concatenate([run.updates["staleness"].to_numpy(dtype=np.int64) for run in series.runs])
    counts = np.bincount(ages, minlength=1)
    return np.arange(len(counts)), np.cumsum(counts) / max(1, counts.sum())
