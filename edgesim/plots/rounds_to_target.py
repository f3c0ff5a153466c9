"""Rounds to reach several levels of accuracy (FedTeddi, fig. 5)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.metrics import start_accuracy, to_target
from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats
from edgesim.plots import palette, style
from edgesim.plots.groups import Panel, labels_of
from edgesim.plots.intervals import LEAST_SEEDS, spread_note

_STEPS = (-0.10, -0.05, 0.0, 0.05)
_NEVER = "not by all runs"
_HATCH = "/////"


def levels_around(target: float, runs: Sequence[RunFolder]) -> list[float]:
    """Levels at 10 and 5 points below, at, and 5 points above the target, as far as they make sense.

    A level must lie above every run's start accuracy, and one above the target must be reached by some run.
    """
    start = max(_start(run) for run in runs)
    levels = [round(target + step, 10) for step in _STEPS]
    best = max(float(run.rounds["test_accuracy"].max()) for run in runs)
    return [level for level in levels if start < level <= max(target, best)]


def draw_rounds_to_target(panels: Sequence[Panel], levels: Sequence[float]) -> Figure:
    """Grouped bars: mean rounds over seeds with one standard deviation, a group per level, a bar per series.

    Deviations are cut at 0, and not drawn for fewer than three seeds. If some runs never reach a level, there is no
    mean but an empty, hatched bar with the number of runs that reached it. It ends at the mean's lower bound, in which
    the other runs count with the last round that they tested. Every level must lie above every run's start accuracy.
    """
    labels = labels_of(panels)
    styles = palette.line_styles(labels)
    width, height = style.panel_size(len(panels), 2.0)
    with style.figure(width, height, [*labels, _NEVER]) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        bar = 0.84 / len(labels)
        any_missed = False
        for axes, panel in zip(grid, panels, strict=True):
            for series in panel.series:
                rank = labels.index(series.label)
                places = np.arange(len(levels)) + (rank - (len(labels) - 1) / 2) * bar
                color = styles[series.label].color
                for place, level in zip(places, levels, strict=True):
                    results = [to_target(run.tests, level, _start(run)) for run in series.runs]
                    rounds = np.array([result.round for result in results if result.reached])
                    if len(rounds) == len(results):
                        _draw_mean(axes, float(place), rounds, bar, color)
                    else:
                        any_missed = True
                        bound = float(np.mean([result.round for result in results]))
                        _draw_censored(axes, float(place), bound, f"{len(rounds)} of {len(results)}", bar, color)
            axes.set_xticks(np.arange(len(levels)), [f"{level:g}" for level in levels])
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel("test accuracy to reach (1)")
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel("rounds needed (count)" + spread_note(panels, "standard deviation"))
        axes.set_ylim(bottom=0)
        handles = [Patch(facecolor=styles[label].color, linewidth=0) for label in labels]
        texts = list(labels)
        if any_missed:
            handles.append(Patch(facecolor="white", hatch=_HATCH, edgecolor="#777777", linewidth=0.5))
            texts.append(_NEVER)
        style.legend_below(figure, handles, texts)
    return figure


def _draw_mean(axes: Axes, place: float, rounds: Floats, bar: float, color: str) -> None:
    """A bar of the mean over runs [n] that all reached the level."""
    spread = float(rounds.std(ddof=1)) if rounds.size >= LEAST_SEEDS else 0.0
    drawn = axes.bar(
        place,
        rounds.mean(),
        bar,
        yerr=[[min(spread, rounds.mean())], [spread]] if spread else None,
        color=color,
        edgecolor="white",
        linewidth=0.3,
        error_kw={"elinewidth": 0.6, "capsize": 0.8 * min(2.0, 10 * bar), "capthick": 0.6},
    )
    if drawn.errorbar:
        style.show_error_bars(drawn.errorbar)


def _draw_censored(axes: Axes, place: float, bound: float, reached: str, bar: float, color: str) -> None:
    """An empty bar that ends at the lower bound of an unknown mean."""
    axes.bar(place, bound, bar, facecolor="white", hatch=_HATCH, edgecolor=color, linewidth=0.5)
    axes.annotate(
        reached,
        (place, 0),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        rotation=90,
        fontsize=min(6.0, 72 * bar * 0.55),
        bbox={"boxstyle": "square,pad=0.05", "fc": "white", "ec": "none"},
    )


def _start(run: RunFolder) -> float:
    start = start_accuracy(run.metrics)
    # Without a start accuracy every level is above it.
    return -1.0 if start is None else start
