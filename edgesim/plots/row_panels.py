"""The frame of figures with a panel per setting and, in each, a row per series, named once at the left."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgesim.plots import style
from edgesim.plots.groups import Panel, labels_of

_NAMES_IN = 1.25
"""Width that the names of the rows take at most; longer ones stand on several lines."""


@dataclass(frozen=True)
class RowPanels:
    """A figure that is being drawn; row i of every panel is that of label i, the first one on top."""

    figure: Figure
    labels: list[str]
    each: list[tuple[Axes, Panel]]


@contextmanager
def row_panels(panels: Sequence[Panel], x_label: str, legend: Sequence[str] = ()) -> Iterator[RowPanels]:
    """Context with the axes of each panel, on one scale, with room for a legend; at its end the rows get names."""
    labels = labels_of(panels)
    names = [style.folded(label, _NAMES_IN) for label in labels]
    row_in = 0.08 + 0.115 * max(name.count("\n") + 1 for name in names)
    panel_in = row_in * len(names) + 0.5 + 0.14 * x_label.count("\n") + (0.2 if len(panels) > 1 else 0.0)
    width, height = style.panel_size(len(panels), panel_in)
    with style.figure(width, height + (style.legend_height_in(legend, width) if legend else 0)) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        for axes in grid:
            axes.grid(visible=False, axis="y")
            axes.grid(axis="x")
            axes.tick_params(axis="y", length=0)
            if axes is not grid[0]:
                axes.sharex(grid[0])
        yield RowPanels(figure, labels, list(zip(grid, panels, strict=True)))
        grid[0].set_yticks(range(len(names)), names)
        grid[0].set_ylim(len(names) - 0.5, -0.5)
        for axes in grid:
            axes.set_xlabel(x_label)
