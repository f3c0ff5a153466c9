"""How evenly the devices took part, as Lorenz curves."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.analysis.fairness import gini, lorenz, participations
from edgesim.plots import style
from edgesim.plots.groups import Panel, labels_of


def draw_fairness(panels: Sequence[Panel]) -> Figure:
    """Share of all updates used that came from the devices with the fewest: mean over seeds, a line per series.

    The dotted diagonal is that of all devices taking part alike; the Gini coefficients stand at the lines' ends.
    """
    labels = labels_of(panels)
    styles = style.line_styles(labels)
    width, height = style.panel_size(len(panels), 2.3)
    with style.figure(width, height + style.legend_height_in(labels, width)) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        lines: dict[str, Line2D] = {}
        for axes, panel in zip(grid, panels, strict=True):
            axes.plot([0, 1], [0, 1], ":", color=style.PALETTE["grey"], linewidth=0.8)
            told = []
            for series in panel.series:
                counts = [participations(run.updates, run.devices) for run in series.runs]
                curve = np.mean([lorenz(count) for count in counts], axis=0)
                share = np.linspace(0, 1, len(curve))
                every = max(1, len(curve) // 8)
                (line,) = axes.plot(share, curve, label=series.label, **styles[series.label].marked(every))
                lines.setdefault(series.label, line)
                told.append((float(np.mean([gini(count) for count in counts])), series.label))
            axes.set_xlim(0, 1)
            axes.set_ylim(0, 1)
            axes.set_xlabel("share of the devices, fewest updates first (1)")
            text = "\n".join(["Gini", *(f"{value:.2f} {label}" for value, label in sorted(told))])
            axes.annotate(text, (0.03, 0.97), xycoords="axes fraction", va="top", fontsize=5.5)
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel("share of the updates used (1)")
        style.legend_below(figure, [lines[label] for label in labels], labels)
    return figure
