"""Final accuracy as bars (FedDance, table 3, figs. 15 and 16)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from edgesim.analysis.metrics import final_accuracy
from edgesim.analysis.statistics import mean_interval
from edgesim.plots import style
from edgesim.plots.groups import Panel, labels_of, several_seeds

_MOST_LEVEL = 6
"""Bars of a panel up to which their numbers stand side by side; those of more stand upright."""


def draw_final_accuracy(panels: Sequence[Panel]) -> Figure:
    """Mean of the last five evaluations with the 95 % t interval over seeds, a bar per series.

    What of an interval is no accuracy is cut off. The axis begins below the least bar: the differences are what is
    asked for.
    """
    labels = labels_of(panels)
    styles = style.line_styles(labels)
    width, height = style.panel_size(len(panels), 1.8)
    height += style.slanted_height_in(labels) * style.rows_of(len(panels))
    upright = max(len(panel.series) for panel in panels) > _MOST_LEVEL
    least, most = 1.0, 0.0
    with style.figure(width, height) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        for axes, panel in zip(grid, panels, strict=True):
            bands = [
                mean_interval([final_accuracy(run.rounds) for run in series.runs]).within(0, 1)
                for series in panel.series
            ]
            for place, (series, band) in enumerate(zip(panel.series, bands, strict=True)):
                ends = None if np.isnan(band.low) else [[band.mean - band.low], [band.high - band.mean]]
                bar = axes.bar(
                    place,
                    band.mean,
                    0.8,
                    yerr=ends,
                    color=styles[series.label].color,
                    error_kw={"elinewidth": 0.6, "capsize": 2, "capthick": 0.6},
                )
                low, high = (band.mean, band.mean) if ends is None else (band.low, band.high)
                if bar.errorbar:
                    style.show_error_bars(bar.errorbar)
                axes.annotate(f"{band.mean:.3f}", (place, high), (0, 3), textcoords="offset points", ha="center",
                              va="bottom", fontsize=6, rotation=90 if upright else 0)  # fmt: skip
                least, most = min(least, low), max(most, high)
            style.slanted_names(axes, [series.label for series in panel.series])
        bottom = max(0.0, least - 0.05)
        # Room for the number above the highest bar.
        grid[0].set_ylim(bottom, most + (0.2 if upright else 0.1) * (most - bottom))
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel("final test accuracy (1)" + ("\nmean, 95 % interval" if several_seeds(panels) else ""))
    return figure
