"""Figures of availability predictors: their windows, hits over time, cost (FedDance, figs. 10, 11 and 18)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, PercentFormatter

from edgesim.base.arrays import Floats
from edgesim.plots import palette, style


class Score(NamedTuple):
    """The scores of a predictor with one pair of windows."""

    accuracy: float
    f1: float


def draw_sensitivity(
    scores: Mapping[str, Mapping[tuple[int, int], Score]], history_rounds: int, future_rounds: int
) -> Figure:
    """Accuracy (above) and F1 (below) over K_h at ``future_rounds`` and over K at ``history_rounds``, a line per trace.

    ``scores`` are by trace and by (K_h, K).
    """
    styles = palette.line_styles(list(scores))
    with style.figure(style.PAGE_IN, 3.4, list(scores)) as figure:
        grid = figure.subplots(2, 2, sharey="row", sharex="col")
        for trace, by_windows in scores.items():
            past = sorted((windows[0], score) for windows, score in by_windows.items() if windows[1] == future_rounds)
            ahead = sorted((windows[1], score) for windows, score in by_windows.items() if windows[0] == history_rounds)
            for column, points in enumerate((past, ahead)):
                at = [place for place, _ in points]
                for row, values in enumerate(([score.accuracy for _, score in points], [s.f1 for _, s in points])):
                    grid[row, column].plot(at, values, **styles[trace].marked(every=1))
        grid[0, 0].set(title=f"(a) $K$ = {future_rounds}", ylabel="accuracy")
        grid[0, 1].set(title=f"(b) $K_h$ = {history_rounds}")
        grid[1, 0].set(xlabel="history window $K_h$ (rounds)", ylabel="F1")
        grid[1, 1].set(xlabel="future window $K$ (rounds)")
        for axes in grid.ravel():
            axes.grid()
        style.legend_below(figure, grid[0, 0].get_lines(), list(scores))
    return figure


def draw_over_time(t_h: Floats, online_share: Floats, accuracy: Mapping[str, tuple[Floats, Floats]]) -> Figure:
    """Accuracy of each predictor over time in hours (above) and the share of devices online at ``t_h``, [n] (below)."""
    names = list(accuracy)
    styles = palette.line_styles(names)
    with style.figure(style.COLUMN_IN, 2.8, names) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
        for name, (at_h, values) in accuracy.items():
            above.plot(at_h, values, **styles[name].line())
        above.set_ylabel("accuracy")
        below.plot(t_h, online_share, color=palette.PALETTE["grey"], linewidth=0.8)
        below.set(ylim=(0, None), xlabel="simulated time (h)", ylabel="online")
        below.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        for axes in (above, below):
            axes.grid()
        style.legend_below(figure, above.get_lines(), names)
    return figure


def draw_costs(prediction_s: Mapping[str, Floats], overhead_s: Mapping[str, Floats], without: Sequence[str]) -> Figure:
    """CDFs of wall time: of a prediction, per device (left), and of the work on a device that a selector adds (right).

    Selectors ``without`` such work are only named, since the logarithmic axis has no 0.
    """
    names = [*prediction_s, *overhead_s]
    styles = palette.line_styles(names)
    with style.figure(style.PAGE_IN, 2.15, names) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        lines = [
            _cdf(axes, values, **styles[name].line())
            for axes, costs in ((left, prediction_s), (right, overhead_s))
            for name, values in costs.items()
        ]
        left.set(title="(a) predictors, on the server", ylabel="share")
        left.set_xlabel("wall time of a prediction, per device (ms)")
        right.set_title("(b) selectors, on the device")
        right.set_xlabel(f"wall time on a device, per selection (ms)\n{', '.join(without)}: 0")
        for axes in (left, right):
            _whole_decades(axes)
            axes.grid()
        style.legend_below(figure, lines, names)
    return figure


def _cdf(axes: Axes, seconds: Floats, **line: object) -> object:
    milliseconds = 1e3 * np.sort(seconds)
    (drawn,) = axes.step(milliseconds, np.arange(1, len(seconds) + 1) / len(seconds), where="post", **line)
    axes.set(xscale="log", ylim=(0, 1.02))
    return drawn


def _whole_decades(axes: Axes) -> None:
    """Let a logarithmic axis end at powers of ten, so that it has at least two labels, and label only these."""
    low, high = axes.get_xlim()
    axes.set_xlim(10 ** np.floor(np.log10(low)), 10 ** np.ceil(np.log10(high)))
    axes.xaxis.set_minor_formatter(NullFormatter())
