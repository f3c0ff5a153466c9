"""Rounds to reach several levels of accuracy (FedTeddi, fig. 5)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.metrics import Reached, rounds_to_target, start_accuracy
from edgesim.analysis.runs import Run
from edgesim.plots import style
from edgesim.plots.groups import Panel, labels_of, several_seeds

_STEPS = (-0.10, -0.05, 0.0, 0.05)
_NEVER = "not by all seeds"


def levels_around(target: float, runs: Sequence[Run]) -> list[float]:
    """Levels at 10 and 5 points below, at, and 5 points above the target, as far as they make sense.

    A level must lie above every run's start accuracy, and one above the target must be reached by some run.
    """
    start = max(_start(run) for run in runs)
    levels = [round(target + step, 10) for step in _STEPS]
    best = max(float(run.rounds["test_accuracy"].max()) for run in runs)
    return [level for level in levels if start < level <= max(target, best)]


def draw_rounds_to_target(panels: Sequence[Panel], levels: Sequence[float]) -> Figure:
    """Grouped bars: mean rounds over seeds with one standard deviation, a group per level, a bar per series.

    No deviation is drawn below 0. A run that never gets to a level counts as its last round tested; the number of such
    runs stands above the bar, which is then hatched. Every level must lie above every run's start accuracy.
    """
    labels = labels_of(panels)
    styles = style.line_styles(labels)
    width, height = style.panel_size(len(panels), 1.9)
    with style.figure(width, height + style.legend_height_in([*labels, _NEVER], width)) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        bar = 0.84 / len(labels)
        any_missed = False
        for axes, panel in zip(grid, panels, strict=True):
            for series in panel.series:
                rank = labels.index(series.label)
                places = np.arange(len(levels)) + (rank - (len(labels) - 1) / 2) * bar
                reached = [[_rounds(run, level) for run in series.runs] for level in levels]
                for place, results in zip(places, reached, strict=True):
                    rounds = np.array([result.value for result in results])
                    missed = sum(not result.reached for result in results)
                    spread = float(rounds.std(ddof=1)) if rounds.size > 1 else 0.0
                    drawn = axes.bar(
                        place,
                        rounds.mean(),
                        bar,
                        yerr=[[min(spread, rounds.mean())], [spread]] if spread else None,
                        color=styles[series.label].color,
                        hatch="/////" if missed else "",
                        edgecolor="white",
                        linewidth=0.3,
                        error_kw={"elinewidth": 0.6, "capsize": 0.8 * min(2.0, 10 * bar), "capthick": 0.6},
                    )
                    if drawn.errorbar:
                        style.show_error_bars(drawn.errorbar)
                    if missed:
                        any_missed = True
                        axes.annotate(
                            str(missed),
                            (place, rounds.mean() + spread),
                            xytext=(0, 1),
                            textcoords="offset points",
                            ha="center",
                            va="bottom",
                            fontsize=5.5,
                        )
            axes.set_xticks(np.arange(len(levels)), [f"{level:g}" for level in levels])
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel("test accuracy to reach (1)")
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel("rounds needed (count)" + ("\nmean, standard deviation" if several_seeds(panels) else ""))
        handles = [Patch(facecolor=styles[label].color, linewidth=0) for label in labels]
        texts = list(labels)
        if any_missed:
            handles.append(Patch(facecolor="#777777", hatch="/////", edgecolor="white", linewidth=0))
            texts.append(_NEVER)
        style.legend_below(figure, handles, texts)
    return figure


def _rounds(run: Run, level: float) -> Reached:
    return rounds_to_target(run.tests, level, _start(run))


def _start(run: Run) -> float:
    start = start_accuracy(run.metrics)
    # Without a start accuracy every level is above it.
    return -1.0 if start is None else start
