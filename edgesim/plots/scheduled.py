"""Clients that a policy schedules, with and without a new class (FedTeddi, fig. 4)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from edgesim.analysis.runs import RunFolder
from edgesim.plots import style
from edgesim.plots.groups import Panel, Series, runs_of
from edgesim.plots.panel_figures import row_panels

_NEW, _OLD = "#444444", "#bbbbbb"
_PARTS = ("with a new class", "only old classes")


def draw_scheduled(panels: Sequence[Panel]) -> Figure:
    """Stacked bars of mean scheduled clients per round, over rounds and seeds, a bar per series.

    If no device ever gets a new class, or the runs have no classes, the bars are not divided.
    """
    split = _is_split(runs_of(panels))
    with row_panels(panels, "scheduled clients (count per round)", _PARTS if split else ()) as drawn:
        for axes, panel in drawn.each:
            places = [drawn.labels.index(series.label) for series in panel.series]
            means = np.array([mean_by_class(series) for series in panel.series])
            if split:
                axes.barh(places, means[:, 0], 0.7, color=_NEW, hatch="////", edgecolor="white", linewidth=0)
                axes.barh(places, means[:, 1], 0.7, left=means[:, 0], color=_OLD)
            else:
                axes.barh(places, means.sum(axis=1), 0.7, color=_OLD)
        if split:
            new = Patch(facecolor=_NEW, hatch="////", edgecolor="white", linewidth=0)
            old = Patch(facecolor=_OLD, linewidth=0)
            style.legend_below(drawn.figure, [new, old], _PARTS)
    return drawn.figure


def mean_by_class(series: Series) -> tuple[float, float]:
    """Mean scheduled clients per round, with a new class and without: over rounds, then over seeds."""
    counts = [run.scheduled_by_class for run in series.runs]
    new = np.mean([count["with_new"].mean() for count in counts])
    return float(new), float(np.mean([count["only_old"].mean() for count in counts]))


def _is_split(runs: Sequence[RunFolder]) -> bool:
    """Whether all runs have the classes that their devices hold in each frame, and some device gets a new one."""
    newcomers = [run.has_newcomers for run in runs]
    return None not in newcomers and any(newcomers)
