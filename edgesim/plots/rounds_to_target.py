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
    known: a hatched column up to the top of the panel says above which bound it lies, in which these runs count with
    the last round that they tested, and how many runs reached the level. Every level must lie above every run's start
    accuracy.
    """
    runs = runs_of(panels)
    need_tests(runs)
    labels = labels_of(panels)
    styles = palette.line_styles(labels)
    some_miss = not all(to_target(run.tests, level, _start(run)).reached for run in runs for level in levels)
    texts = [*labels, *([_UNKNOWN] if some_miss else [])]
    with style.figure(*style.panel_size(len(panels), 2.0), texts) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        bar = 0.84 / len(labels)
        unknown: list[tuple[Axes, float, str, str]] = []
        top = 0.0
        for axes, panel in zip(grid, panels, strict=True):
            for series in panel.series:
                rank = labels.index(series.label)
                places = np.arange(len(levels)) + (rank - (len(labels) - 1) / 2) * bar
                color = styles[series.label].color
                for place, level in zip(places, levels, strict=True):
                    results = [to_target(run.tests, level, _start(run)) for run in series.runs]
                    rounds, reached = [result.round for result in results], sum(result.reached for result in results)
                    if reached == len(results):
                        top = max(top, _draw_mean(axes, float(place), drawn_interval(rounds).within(0), bar, color))
                    else:
                        top = max(top, bound := float(np.mean(rounds)))
                        unknown.append((axes, float(place), f"> {bound:.3g} ({reached} of {len(results)})", color))
            axes.set_xticks(np.arange(len(levels)), [f"{level:g}" for level in levels])
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel("test accuracy to reach")
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel("rounds needed" + spread_note(panels))
        axes.set_ylim(0, 1.05 * top)
        for axes, place, text, color in unknown:
            _draw_unknown(axes, place, text, bar, color)
        handles = [Patch(facecolor=styles[label].color, linewidth=0) for label in labels]
        if some_miss:
            handles.append(Patch(facecolor="white", hatch=_HATCH, edgecolor="#999999", linewidth=0.5))
        style.legend_below(figure, handles, texts)
    return figure


def _draw_mean(axes: Axes, place: float, rounds: Interval, bar: float, color: str) -> float:
    """Draw a bar of the mean of runs that all reached the level; returns the highest place that is drawn on."""
    known = not np.isnan(rounds.low)
    drawn = axes.bar(
        place,
        rounds.mean,
        bar,
        yerr=[[rounds.mean - rounds.low], [rounds.high - rounds.mean]] if known else None,
        color=color,
        edgecolor="white",
        linewidth=0.3,
        error_kw={"elinewidth": 0.6, "capsize": 0.8 * min(2.0, 10 * bar), "capthick": 0.6},
    )
    if drawn.errorbar:
        style.show_error_bars(drawn.errorbar)
    return rounds.high if known else rounds.mean


def _draw_unknown(axes: Axes, place: float, text: str, bar: float, color: str) -> None:
    """A column through the whole panel, which no bar of a known mean is, with what is known of the mean."""
    axes.bar(place, axes.get_ylim()[1], bar, facecolor="white", hatch=_HATCH, edgecolor=color, linewidth=0.5, alpha=0.5)
    axes.annotate(
        text,
        (place, 0),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        rotation=90,
        fontsize=float(np.clip(72 * bar * 0.55, 5.0, 6.0)),
        bbox={"boxstyle": "square,pad=0.05", "fc": "white", "ec": "none"},
    )


def _start(run: RunFolder) -> float:
    start = start_accuracy(run.metrics)
    # Without a start accuracy every level is above it.
    return -1.0 if start is None else start
