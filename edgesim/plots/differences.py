"""Paired differences between the values of a knob and a reference value, with their intervals."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.differences import MEASURES, Difference
from edgesim.analysis.summary import TO_TARGET
from edgesim.files.plain_text import figure_text
from edgesim.plots import style
from edgesim.plots.groups import labels_of, panels_of, quantity
from edgesim.plots.intervals import drawn_interval

_NAMES_IN = 1.65
_HALF_SPREAD = 0.3
"""Distance from the middle of a row to the outermost of several deadlines, in rows."""


def draw_differences(found: Sequence[Difference], reference: str) -> Figure:
    """A panel per measure, a row per combination of knobs, a colour per deadline: mean and 95 % t interval over seeds.

    Zero is the reference; a bar that does not cross it is a difference that the seeds agree on. Fewer than three pairs
    have no interval. Rounds, seconds and joules to the target are compared only in pairs of which both runs reached it;
    if pairs are left out, a row says how many of its pairs count, and the panel how many were left out. A measure in
    which no pair differs has no panel, unless that is so of all.
    """
    panels = panels_of([one.run for one in found])
    rows = labels_of(panels)
    of = {one.run.folder: one for one in found}
    present = [name for name in MEASURES if any(name in one.values for one in found)]
    measures = [name for name in present if any(one.values.get(name) for one in found)] or present
    titles = [panel.title for panel in panels]
    styles = style.line_styles(titles)
    several = len(panels) > 1
    names = [style.folded(row, _NAMES_IN) for row in rows]
    row_in = max(0.09 + 0.115 * max(name.count("\n") + 1 for name in names), 0.09 * len(panels) + 0.05)
    width, height = style.panel_size(len(measures), 0.85 + row_in * len(rows))
    with style.figure(width, height, titles if several else ()) as figure:
        grid = dict(zip(measures, style.panel_grid(figure, [quantity(name).name for name in measures]), strict=True))
        shifts = np.linspace(-_HALF_SPREAD, _HALF_SPREAD, len(panels)) if several else np.zeros(1)
        for measure, axes in grid.items():
            axes.axvline(0, color="black", linewidth=0.7)
            left_out = 0
            for panel, shift in zip(panels, shifts, strict=True):
                for series in panel.series:
                    pairs = [of[run.folder] for run in series.runs]
                    seen = [pair.values[measure] for pair in pairs if measure in pair.values]
                    place = rows.index(series.label) + shift
                    _draw_row(axes, float(place), seen, styles[panel.title])
                    if measure in TO_TARGET and len(seen) < len(pairs):
                        left_out += len(pairs) - len(seen)
                        _say_how_many(axes, float(place), seen, f"{len(seen)} of {len(pairs)}")
            axes.margins(x=0.12)
            axes.grid(visible=False, axis="y")
            axes.grid(axis="x")
            axes.xaxis.set_major_locator(MaxNLocator(4))
            note = f"\n{left_out} of {len(found)} pairs left out:\nthe target was not reached" if left_out else ""
            axes.set_xlabel(f"difference ({quantity(measure).unit}){note}")
        if {"scheduled", "arrived"} <= grid.keys():
            # Both are devices per round: one scale shows how many are lost between scheduling and arrival.
            _share_scale(grid["scheduled"], grid["arrived"])
        every = list(grid.values())
        every[0].set_yticks(range(len(rows)), names)
        every[0].set_ylim(len(rows) - 0.5, -0.5)
        for axes in every[:: style.abreast(len(every))]:
            axes.set_ylabel(f"against {figure_text(reference)}")
        if several:
            marks = [Line2D([], [], color=styles[name].color, marker=styles[name].marker) for name in titles]
            style.legend_below(figure, marks, titles)
    return figure


def _draw_row(axes: Axes, place: float, values: Sequence[float], look: style.LineStyle) -> None:
    if values:
        middle = drawn_interval(values)
        axes.hlines(place, middle.low, middle.high, color=look.color, linewidth=1.1)
        axes.plot(middle.mean, place, linestyle="none", marker=look.marker, color=look.color)


def _say_how_many(axes: Axes, place: float, values: Sequence[float], text: str) -> None:
    """Write the number of pairs that count above their mean, or in its place if there are none."""
    lift, middle = (2.5, float(np.mean(values))) if values else (0.0, 0.0)
    box = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"}
    axes.annotate(text, (middle, place), (0, lift), textcoords="offset points", fontsize=5, ha="center",
                  va="bottom" if values else "center", bbox=None if values else box)  # fmt: skip


def _share_scale(one: Axes, other: Axes) -> None:
    ends = np.array([one.get_xlim(), other.get_xlim()])
    for axes in (one, other):
        axes.set_xlim(ends[:, 0].min(), ends[:, 1].max())
