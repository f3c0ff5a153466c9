"""Rounds to reach several levels of accuracy (FedTeddi, fig. 5)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.metrics import start_accuracy, to_target
from edgesim.analysis.needed import need_tests
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.statistics import Interval
from edgesim.plots import palette, style
from edgesim.plots.groups import Panel, labels_of, runs_of
from edgesim.plots.intervals import drawn_interval, spread_note

_STEPS = (-0.10, -0.05, 0.0, 0.05)
_UNKNOWN = "mean above n, k of N runs got there: > n (k of N)"
_HATCH = "/////"
_ROW_IN, _GAP = 0.105, 1.0
"""Height of a bar in inches, above that of a text, and the gap between two groups in bars."""


def levels_around(target: float, runs: Sequence[RunFolder]) -> list[float]:
    """Levels at 10 and 5 points below, at, and 5 points above the target, as far as they make sense.

    A level must lie above every run's start accuracy, and one above the target must be reached by some run.
    """
    need_tests(runs)
    start = max(_start(run) for run in runs)
    levels = [round(target + step, 10) for step in _STEPS]
    best = max(float(run.rounds["test_accuracy"].max()) for run in runs)
    return [level for level in levels if start < level <= max(target, best)]


def draw_rounds_to_target(panels: Sequence[Panel], levels: Sequence[float]) -> Figure:
    """Grouped bars: mean rounds over seeds with the 95 % t interval, a group per level, a bar per series.

    Intervals are cut at 0, and not drawn for fewer than three seeds. If some runs never reach a level, the mean is not
    known: a hatched row through the whole panel says above which bound it lies, in which these runs count with the last
    round that they tested, and how many runs reached the level. Every level must lie above every run's start accuracy.
    """
    runs = runs_of(panels)
    need_tests(runs)
    labels = labels_of(panels)
    styles = palette.line_styles(labels)
    some_miss = not all(to_target(run.tests, level, _start(run)).reached for run in runs for level in levels)
    texts = [*labels, *([_UNKNOWN] if some_miss else [])]
    group = len(labels) + _GAP
    rows_in = max(1.1, _ROW_IN * group * len(levels))
    with style.figure(*style.panel_size(len(panels), rows_in + 0.7), texts) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        unknown: list[tuple[Axes, float, str, str]] = []
        most = 0.0
        for axes in grid[1:]:
            axes.sharex(grid[0])
        for axes, panel in zip(grid, panels, strict=True):
            for series in panel.series:
                color = styles[series.label].color
                for number, level in enumerate(levels):
                    place = number * group + labels.index(series.label)
                    results = [to_target(run.tests, level, _start(run)) for run in series.runs]
                    rounds, reached = [result.round for result in results], sum(result.reached for result in results)
                    if reached == len(results):
                        most = max(most, _draw_mean(axes, place, drawn_interval(rounds).within(0), color))
                    else:
                        most = max(most, bound := float(np.mean(rounds)))
                        unknown.append((axes, place, f"> {bound:.3g} ({reached} of {len(results)})", color))
            axes.grid(visible=False, axis="y")
            axes.grid(axis="x")
            axes.tick_params(axis="y", length=0)
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axes.set_xlabel("rounds needed" + spread_note(panels))
        middles = np.arange(len(levels)) * group + (len(labels) - 1) / 2
        grid[0].set_yticks(middles, [f"{level:g}" for level in levels])
        grid[0].set_ylim(len(levels) * group - _GAP / 2 - 0.5, -_GAP / 2 - 0.5)
        grid[0].set_xlim(0, 1.05 * most)
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel("test accuracy to reach")
        for axes, place, text, color in unknown:
            _draw_unknown(axes, place, text, color)
        handles = [Patch(facecolor=styles[label].color, linewidth=0) for label in labels]
        if some_miss:
            handles.append(Patch(facecolor="white", hatch=_HATCH, edgecolor="#999999", linewidth=0.5))
        style.legend_below(figure, handles, texts)
    return figure


def _draw_mean(axes: Axes, place: float, rounds: Interval, color: str) -> float:
    """Draw a bar of the mean of runs that all reached the level; returns the farthest place that is drawn on."""
    known = not np.isnan(rounds.low)
    drawn = axes.barh(
        place,
        rounds.mean,
        1.0,
        xerr=[[rounds.mean - rounds.low], [rounds.high - rounds.mean]] if known else None,
        color=color,
        edgecolor="white",
        linewidth=0.3,
        error_kw={"elinewidth": 0.6, "capsize": 1.6, "capthick": 0.6},
    )
    if drawn.errorbar:
        style.show_error_bars(drawn.errorbar)
    return rounds.high if known else rounds.mean


def _draw_unknown(axes: Axes, place: float, text: str, color: str) -> None:
    """A row through the whole panel, which no bar of a known mean is, with what is known of the mean."""
    axes.barh(
        place, axes.get_xlim()[1], 1.0, facecolor="white", hatch=_HATCH, edgecolor=color, linewidth=0.5, alpha=0.5
    )
    box = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"}
    axes.annotate(text, (0, place), (3, 0), textcoords="offset points", va="center", fontsize=6, bbox=box)


def _start(run: RunFolder) -> float:
    start = start_accuracy(run.metrics)
    # Without a start accuracy every level is above it.
    return -1.0 if start is None else start
