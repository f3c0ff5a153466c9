"""Test accuracy against what it costs: simulated seconds, bits sent up and joules of all devices."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from edgesim.analysis.needed import need_knobs, need_tests
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.spending import COSTS, Cost, accuracy_over, spending
from edgesim.plots import palette, style
from edgesim.plots.groups import bits_unit, knob_text
from edgesim.plots.intervals import LEAST_SEEDS, drawn_interval, note_of_seeds
from edgesim.plots.panel_figures import draw_means

_LABELS: dict[Cost, str] = {
    "seconds": "simulated time (s)",
    "bits": "bits sent up",
    "joules": "energy of all devices (J)",
}
_POINTS = 200
_MARKS = 5
_TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
_MARGIN = 0.75
"""Share of the least accuracy, and of the least error, at which the scale begins and ends."""


def draw_cost_curves(runs: Sequence[RunFolder], row: str, series: str, foremost: Collection[str] = ()) -> Figure:
    """A row of panels per value of the knob ``row``, a panel per cost, a line per value of the knob ``series``.

    A line is the mean over seeds, each of which keeps its last accuracy until its next test, up to the cost that every
    seed reached. Those ``foremost`` are thick and, from three seeds on, have bands of the 95 % t interval. Accuracies
    stand on a logit scale, on which 0.9 and 0.95 are as far apart as 0.1 and 0.05.
    """
    need_knobs(runs, row, series)
    need_tests(runs)
    tables: dict[tuple[object, str], list[pd.DataFrame]] = {}
    for run in runs:
        tables.setdefault((run.knobs[row], str(run.knobs[series])), []).append(spending(run))
    rows = {value: knob_text(row, value) for value in dict.fromkeys(run.knobs[row] for run in runs)}
    labels = list(dict.fromkeys(name for _, name in tables))
    styles = palette.line_styles(labels)
    lines: dict[str, Line2D] = {}
    titles = [text for text in rows.values() for _ in COSTS]
    banded = bool(foremost) and max(map(len, tables.values())) >= LEAST_SEEDS
    note = ["95 % band of the thick lines"] if banded else []
    most_bits = max(float(spent["bits"].iloc[-1]) for of in tables.values() for spent in of)
    unit, bits = bits_unit(most_bits)
    factors: dict[Cost, float] = {"seconds": 1.0, "bits": 1 / bits, "joules": 1.0}
    with style.figure(style.PAGE_IN, 1.65 * len(rows), [*labels, *note]) as figure:
        grid = iter(style.panel_grid(figure, titles, across=len(COSTS)))
        for value in rows:
            for cost in COSTS:
                axes = next(grid)
                for place, name in enumerate(labels):
                    if spent := tables.get((value, name)):
                        first_mark = int(_POINTS / _MARKS * place / len(labels))
                        look, thick = styles[name], name in foremost
                        lines[name] = _draw_line(axes, spent, cost, factors[cost], look, thick, first_mark)
                axes.set_xlim(left=0)
                axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
                axes.set_xlabel(_LABELS[cost] + (f" ({unit})" if cost == "bits" else ""))
        means = np.concatenate([np.asarray(line.get_ydata()) for axes in figure.axes for line in axes.lines])
        _scale_accuracy(figure.axes[0], float(means.min()), float(means.max()))
        for axes in figure.axes[:: len(COSTS)]:
            axes.set_ylabel("test accuracy,\nlogit scale" + note_of_seeds([len(of) for of in tables.values()]))
        handles = [*(lines[name] for name in labels), *(style.band_patch() for _ in note)]
        style.legend_below(figure, handles, [*labels, *note])
    return figure


def _scale_accuracy(axes: Axes, least: float, most: float) -> None:
    """Give axes, and all that share their y axis, a logit scale that holds accuracies from ``least`` to ``most``."""
    axes.set_yscale("logit", nonpositive="clip")
    axes.yaxis.set_major_locator(FixedLocator(_TICKS))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(_MARGIN * max(least, _TICKS[0]), 1 - _MARGIN * (1 - min(most, _TICKS[-1])))


def _draw_line(
    axes: Axes,
    tables: Sequence[pd.DataFrame],
    cost: Cost,
    factor: float,
    look: palette.LineStyle,
    thick: bool,
    first_mark: int,
) -> Line2D:
    places, values = accuracy_over(tables, cost, _POINTS)
    bands = [drawn_interval(column).within(0, 1) for column in values.T]
    at = places * factor
    # The markers of each line are shifted, so that they do not hide those of another.
    return draw_means(
        axes,
        at,
        bands,
        banded=thick and len(tables) >= LEAST_SEEDS,
        linewidth=1.3 if thick else 0.7,
        markersize=3.5 if thick else 2.6,
        zorder=2.5 if thick else 2,
        **look.marked((first_mark, _POINTS // _MARKS)),
    )
