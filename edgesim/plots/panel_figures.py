"""The frames of figures with a panel per setting and, in each, a line or a row per series."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from edgesim.analysis.statistics import Interval
from edgesim.plots import palette, style
from edgesim.plots.groups import Panel, labels_of

_NAMES_IN = 1.25
"""Width that the names of the rows take at most; longer ones stand on several lines."""


@dataclass(frozen=True)
class PanelFigure:
    """A figure that is being drawn."""

    figure: Figure
    labels: list[str]
    """The series of all panels; where they are rows, row i of every panel is that of label i, the first one on top."""
    styles: dict[str, palette.LineStyle]
    """Line style of each series, by its label."""
    each: list[tuple[Axes, Panel]]
    lines: dict[str, Artist] = field(default_factory=dict)
    """The line or patch that stands for each text of the legend of `line_panels`, to be filled in by the caller."""

    def bar(self, axes: Axes, label: str, band: Interval, form: str) -> tuple[float, float]:
        """Draw the bar of a series in its row, with its interval and its mean as a number; returns where it lies."""
        place, known = self.labels.index(label), not np.isnan(band.low)
        bar = axes.barh(
            place,
            band.mean,
            0.72,
            xerr=[[band.mean - band.low], [band.high - band.mean]] if known else None,
            color=self.styles[label].color,
            error_kw={"elinewidth": 0.6, "capsize": 2, "capthick": 0.6},
        )
        if bar.errorbar:
            style.show_error_bars(bar.errorbar)
        low, high = _ends(band)
        # Of a bar to the left the number stands at its foot.
        _write_beside(axes, form.format(band.mean), max(high, 0), place)
        return low, high

    def point(self, axes: Axes, label: str, band: Interval, form: str) -> tuple[float, float]:
        """Draw the mean of a series as a point in its row, with its interval and a number; returns where it lies.

        Unlike a bar, whose length is read, a point may stand on an axis that does not begin at 0.
        """
        place, look = self.labels.index(label), self.styles[label]
        low, high = _ends(band)
        reach = None if np.isnan(band.low) else [[band.mean - low], [high - band.mean]]
        point = {"marker": look.marker, "linestyle": "none", "color": look.color, "markersize": 4}
        axes.errorbar(band.mean, place, xerr=reach, elinewidth=0.9, capsize=2, capthick=0.9, **point)  # type: ignore[arg-type]
        _write_beside(axes, form.format(band.mean), high, place)
        return low, high


def _ends(band: Interval) -> tuple[float, float]:
    """Ends of an interval; the mean for both where there are too few seeds for one."""
    return (band.mean, band.mean) if np.isnan(band.low) else (band.low, band.high)


def _write_beside(axes: Axes, text: str, x: float, place: float) -> None:
    axes.annotate(text, (x, place), (3, 0), textcoords="offset points", ha="left", va="center", fontsize=6)


@contextmanager
def line_panels(
    panels: Sequence[Panel], y_label: str, panel_height_in: float = 2.0, further: Sequence[str] = ()
) -> Iterator[PanelFigure]:
    """Context with the axes of each panel; at its end the first panel of each row gets a label, the figure a legend.

    ``further`` are texts of the legend after the labels; the caller fills in their lines as well. All panels share both
    scales: a limit that is set before all panels are drawn freezes the limits of all.
    """
    texts = [*labels_of(panels), *further]
    with _frame(panels, panel_height_in, texts) as drawn:
        yield drawn
        for axes, _ in drawn.each[:: style.abreast(len(panels))]:
            axes.set_ylabel(y_label)
        style.legend_below(drawn.figure, [drawn.lines[text] for text in texts], texts)


@contextmanager
def row_panels(panels: Sequence[Panel], x_label: str, legend: Sequence[str] = ()) -> Iterator[PanelFigure]:
    """Context with the axes of each panel, on one scale, with room for a legend; at its end the rows get names."""
    names = [style.folded(label, _NAMES_IN) for label in labels_of(panels)]
    row_in = 0.08 + 0.115 * max(name.count("\n") + 1 for name in names)
    panel_in = row_in * len(names) + 0.5 + 0.14 * x_label.count("\n") + (0.2 if len(panels) > 1 else 0.0)
    with _frame(panels, panel_in, legend) as drawn:
        for axes, _ in drawn.each:
            axes.grid(visible=False, axis="y")
            axes.grid(axis="x")
            axes.tick_params(axis="y", length=0)
            axes.set_xlabel(x_label)
        yield drawn
        first, _ = drawn.each[0]
        first.set_yticks(range(len(names)), names)
        first.set_ylim(len(names) - 0.5, -0.5)


@contextmanager
def _frame(panels: Sequence[Panel], panel_in: float, legend: Sequence[str]) -> Iterator[PanelFigure]:
    labels = labels_of(panels)
    width, height = style.panel_size(len(panels), panel_in)
    with style.figure(width, height, legend) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        for axes in grid[1:]:
            axes.sharex(grid[0])
        yield PanelFigure(figure, labels, palette.line_styles(labels), list(zip(grid, panels, strict=True)))


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
