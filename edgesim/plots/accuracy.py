"""Test accuracy over rounds and over simulated seconds, mean and 95 % interval over seeds."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from edgesim.analysis.metrics import start_accuracy
from edgesim.analysis.runs import Run
from edgesim.analysis.statistics import mean_interval
from edgesim.plots.groups import Panel, Series
from edgesim.plots.line_panels import line_panels

Floats = NDArray[np.float64]
Over = Literal["rounds", "seconds"]

_MOST_BANDS = 3
"""Series up to which intervals are drawn as bands."""

_LABELS = {"rounds": "communication round (count)", "seconds": "simulated time (s)"}
_HOUR_S = 3600.0


def draw_accuracy(panels: Sequence[Panel], over: Over, target: float | None = None) -> Figure:
    """Accuracy curves from the start accuracy on, a line per series, the target as a thin line.

    Over rounds, the rounds that every seed of a series evaluated; over seconds, each seed keeps its last
    value until the next evaluation, up to the time that every seed reached. Seconds are shown as hours where a run
    lasts for one.
    """
    with line_panels(panels, "test accuracy (1)") as drawn:
        in_hours = over == "seconds" and longest_s(panels) >= _HOUR_S
        for axes, panel in drawn.each:
            for series in panel.series:
                places, values = curve(series, over)
                places = places / _HOUR_S if in_hours else places
                bands = [mean_interval(column).within(0, 1) for column in values.T]
                look = drawn.styles[series.label]
                (drawn.lines[series.label],) = axes.plot(
                    places,
                    [band.mean for band in bands],
                    label=series.label,
                    drawstyle="default" if over == "rounds" else "steps-post",
                    **look.marked(every=max(1, places.size // 6)),
                )
                if len(series.runs) < 2:
                    continue
                low, high = np.array([band.low for band in bands]), np.array([band.high for band in bands])
                if len(drawn.labels) <= _MOST_BANDS:
                    step: Literal["post"] | None = None if over == "rounds" else "post"
                    axes.fill_between(places, low, high, color=look.color, alpha=0.2, linewidth=0, step=step)
                else:
                    # Eight bands on top of each other are mud: bars at some places, each series at its own.
                    own = _own_places(places, drawn.labels.index(series.label), len(drawn.labels))
                    axes.vlines(places[own], low[own], high[own], color=look.color, linewidth=0.7)
            if target is not None:
                axes.axhline(target, color="#555555", linewidth=0.7)
                axes.annotate(
                    f"target {target:g}",
                    (0, target),
                    xycoords=("axes fraction", "data"),
                    xytext=(2, 1),
                    textcoords="offset points",
                    ha="left",
                    va="bottom",
                    fontsize=7,
                    color="#555555",
                )
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=over == "rounds"))
            axes.set_xlabel("simulated time (h)" if in_hours else _LABELS[over])
    return drawn.figure


def longest_s(panels: Sequence[Panel]) -> float:
    """Simulated seconds of the longest run."""
    runs = (run for panel in panels for series in panel.series for run in series.runs)
    return max(float(run.rounds["t_end_s"].iloc[-1]) for run in runs)


def _own_places(places: Floats, position: int, series: int) -> NDArray[np.int64]:
    """Six indices into the places, shifted so that no two series share one."""
    gap = max(1, places.size // 6)
    shift = gap * (position + 0.5) / series
    return np.unique((shift + gap * np.arange(places.size // gap)).astype(np.int64).clip(max=places.size - 1))


def curve(series: Series, over: Over) -> tuple[Floats, Floats]:
    """Places on the axis [p] and the accuracy of every seed there [seeds, p]."""
    paths = [_path(run, over) for run in series.runs]
    if over == "rounds":
        places = paths[0][0]
        for other, _ in paths[1:]:
            places = np.intersect1d(places, other)
        return places, np.stack([values[np.searchsorted(at, places)] for at, values in paths])
    first, last = max(at[0] for at, _ in paths), min(at[-1] for at, _ in paths)
    places = np.unique(np.concatenate([at for at, _ in paths]))
    places = places[(places >= first) & (places <= last)]
    return places, np.stack([values[np.searchsorted(at, places, side="right") - 1] for at, values in paths])


def _path(run: Run, over: Over) -> tuple[Floats, Floats]:
    tests = run.tests.drop_duplicates("round") if over == "rounds" else run.tests
    at = tests["round" if over == "rounds" else "t_s"].to_numpy(dtype=np.float64)
    values = tests["accuracy"].to_numpy(dtype=np.float64)
    start = start_accuracy(run.metrics)
    if start is None:
        return at, values
    return np.concatenate([[0.0], at]), np.concatenate([[start], values])
