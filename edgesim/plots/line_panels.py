"""The frame of figures with a panel per setting, a line per series in each, and one legend for all."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.plots import style
from edgesim.plots.groups import Panel, labels_of


@dataclass(frozen=True)
class LinePanels:
    """A figure that is being drawn."""

    figure: Figure
    labels: list[str]
    styles: dict[str, style.LineStyle]
    """Line style of each series, by its label."""
    each: list[tuple[Axes, Panel]]
    lines: dict[str, Line2D] = field(default_factory=dict)
    """The line that stands for each text of the legend, to be filled in by the caller."""


@contextmanager
def line_panels(
    panels: Sequence[Panel], y_label: str, panel_height_in: float = 2.0, further: Sequence[str] = ()
) -> Iterator[LinePanels]:
    """Context with the axes of each panel; at its end the first panel of each row gets a label, the figure a legend.

    ``further`` are texts of the legend after the labels; the caller fills in their lines as well. All panels share both
    scales: a limit that is set before all panels are drawn freezes the limits of all.
    """
    labels = labels_of(panels)
    texts = [*labels, *further]
    width, height = style.panel_size(len(panels), panel_height_in)
    with style.figure(width, height + style.legend_height_in(texts, width)) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        for axes in grid[1:]:
            axes.sharex(grid[0])
        drawn = LinePanels(figure, labels, style.line_styles(labels), list(zip(grid, panels, strict=True)))
        yield drawn
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel(y_label)
        style.legend_below(figure, [drawn.lines[text] for text in texts], texts)
