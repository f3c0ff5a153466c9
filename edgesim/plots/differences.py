"""What the values of a knob are worth against a reference: paired differences with their intervals."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.differences import MEASURES, Difference
from edgesim.analysis.statistics import mean_interval
from edgesim.plots import style
from edgesim.plots.groups import labels_of, panels_of, quantity

_HALF_SPREAD = 0.3
"""How far from its row's middle the outermost of several deadlines stands."""


def draw_differences(found: Sequence[Difference], reference: str) -> Figure:
    """A panel per measure, a row per combination of knobs, a colour per deadline: mean and 95 % t interval over seeds.

    Zero is the reference; a bar that does not cross it is a difference that the seeds agree on.
    """
    panels = panels_of([one.run for one in found])
    rows = labels_of(panels)
    values = {one.run.folder: one.values for one in found}
    measures = [name for name in MEASURES if any(name in one.values for one in found)]
    titles = [panel.title for panel in panels]
    styles = style.line_styles(titles)
    several = len(panels) > 1
    width, height = style.panel_size(len(measures), 0.75 + 0.2 * len(rows))
    with style.figure(width, height + (style.legend_height_in(titles, width) if several else 0)) as figure:
        grid = style.panel_grid(figure, [quantity(name).name for name in measures])
        shifts = np.linspace(-_HALF_SPREAD, _HALF_SPREAD, len(panels)) if several else np.zeros(1)
        for axes, measure in zip(grid, measures, strict=True):
            axes.axvline(0, color="black", linewidth=0.7)
            for panel, shift in zip(panels, shifts, strict=True):
                look = styles[panel.title]
                for series in panel.series:
                    seen = [values[run.folder] for run in series.runs]
                    middle = mean_interval([one[measure] for one in seen if measure in one])
                    place = rows.index(series.label) + shift
                    axes.hlines(place, middle.low, middle.high, color=look.color, linewidth=1.1)
                    axes.plot(middle.mean, place, linestyle="none", marker=look.marker, color=look.color)
            axes.grid(visible=False, axis="y")
            axes.grid(axis="x")
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.set_xlabel(f"difference ({quantity(measure).unit})")
        grid[0].set_yticks(range(len(rows)), rows)
        grid[0].set_ylim(len(rows) - 0.5, -0.5)
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel(f"against {reference}")
        if several:
            marks = [Line2D([], [], color=styles[name].color, marker=styles[name].marker) for name in titles]
            style.legend_below(figure, marks, titles)
    return figure
