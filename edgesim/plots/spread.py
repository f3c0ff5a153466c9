"""Spread of the runs of one setting: the final accuracy of each."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.analysis.metrics import final_accuracy
from edgesim.analysis.needed import need_tests
from edgesim.plots import style
from edgesim.plots.groups import Panel, runs_of
from edgesim.plots.intervals import drawn_interval
from edgesim.plots.panel_figures import row_panels

_TEXTS = ("one run", "mean, 95 % interval from 3 seeds on")


def draw_spread(panels: Sequence[Panel]) -> Figure:
    """A point for each run's final accuracy, a row per series, with the mean and, from three runs on, its 95 % t
    interval.
    """
    need_tests(runs_of(panels))
    with row_panels(panels, "final test accuracy", _TEXTS) as drawn:
        for axes, panel in drawn.each:
            for series in panel.series:
                each = np.array([final_accuracy(run.rounds) for run in series.runs])
                place, color = drawn.labels.index(series.label), drawn.styles[series.label].color
                axes.plot(each, np.full(len(each), place + 0.15), "o", color=color, markersize=3, alpha=0.7)
                reach = drawn_interval(each).high - each.mean()
                axes.errorbar(each.mean(), place - 0.2, xerr=reach, fmt="|", color="black", elinewidth=0.8, capsize=2)
        handles = [Line2D([], [], color="black", linestyle="none", marker=mark) for mark in ("o", "|")]
        style.legend_below(drawn.figure, handles, _TEXTS)
    return drawn.figure
