"""Final accuracy as bars (FedDance, table 3, figs. 15 and 16)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from edgesim.analysis.metrics import final_accuracy
from edgesim.analysis.statistics import mean_interval
from edgesim.plots import style
from edgesim.plots.groups import Panel, labels_of


def draw_final_accuracy(panels: Sequence[Panel]) -> Figure:
    """Mean of the last five evaluations with the 95 % t interval over seeds, a bar per series.

    What of an interval is no accuracy is cut off. The axis begins below the least bar: the differences are what is
    asked for.
    """
    labels = labels_of(panels)
    styles = style.line_styles(labels)
    width, height = style.panel_size(len(panels), 2.4)
    least = 1.0
    with style.figure(width, height) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        for axes, panel in zip(grid, panels, strict=True):
            bands = [
                mean_interval([final_accuracy(run.rounds) for run in series.runs]).within(0, 1)
                for series in panel.series
            ]
            for place, (series, band) in enumerate(zip(panel.series, bands, strict=True)):
                ends = None if np.isnan(band.low) else [[band.mean - band.low], [band.high - band.mean]]
                axes.bar(place, band.mean, 0.8, yerr=ends, color=styles[series.label].color, error_kw={"capsize": 2})
                axes.annotate(f"{band.mean:.3f}", (place, band.mean), (0, 2), textcoords="offset points",
                              ha="center", fontsize=6)  # fmt: skip
                least = min(least, band.mean if np.isnan(band.low) else band.low)
            axes.set_xticks(
                range(len(panel.series)), [series.label for series in panel.series], rotation=40, ha="right"
            )
        grid[0].set_ylim(max(0.0, least - 0.05), None)
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel("final test accuracy (1)")
    return figure
