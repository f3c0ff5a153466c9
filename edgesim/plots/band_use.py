"""Share of each station's band that is in use, over time."""

from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.analysis.band_use import StepSeries, use_by_station
from edgesim.analysis.runs import RunFolder
from edgesim.base.plain_text import figure_text
from edgesim.plots import palette, style
from edgesim.plots.gantt import round_drawn

MOST_ROUNDS = 10
MOST_STATIONS = 8
_LINES: dict[str, dict[str, Any]] = {
    "end of a round": {"color": "black", "linestyle": ":", "linewidth": 0.6},
    "mean of the run": {"color": palette.PALETTE["vermilion"], "linestyle": "--", "linewidth": 0.9},
}
"""Lines by their text in the legend."""


def draw_band_use(run: RunFolder, round: int | None = None) -> Figure:
    """Share of the band in use over simulated time, a panel per station, with the rounds' ends as dotted lines.

    Shows ten rounds from ``round`` on, or from the first round that scheduled a device; the dashed line is the mean
    over the whole run. At most `MOST_STATIONS` stations are shown, the first ones. Raises `EdgesimError` for a round
    that the run does not have.
    """
    rounds, stations = run.rounds, list(islice(use_by_station(run), MOST_STATIONS))
    first = round_drawn(run, rounds, round)
    shown = rounds[(rounds["round"] >= first) & (rounds["round"] < first + MOST_ROUNDS)]
    several = len(stations) > 1
    with style.figure(style.COLUMN_IN, 1.85 if not several else 0.45 + 0.95 * len(stations), list(_LINES)) as figure:
        grid = figure.subplots(len(stations), squeeze=False, sharex=True, sharey=True).ravel()
        for i, (axes, (station, use)) in enumerate(zip(grid, stations, strict=True)):
            mean = use.mean(0.0, float(rounds["t_end_s"].iloc[-1]))
            _draw(axes, use, shown, mean)
            place = f"({style.letter(i)}) {figure_text(station.name)}, " if several else ""
            axes.set_title(f"{place}mean of the run {mean:.2f}")
        grid[-1].set_xlabel("simulated time (s)")
        figure.supylabel("share of the band in use", fontsize=8)
        style.legend_below(figure, [Line2D([], [], **look) for look in _LINES.values()], list(_LINES))
    return figure


def _draw(axes: Axes, use: StepSeries, rounds: pd.DataFrame, mean: float) -> None:
    begin_s, end_s = float(rounds["t_start_s"].iloc[0]), float(rounds["t_end_s"].iloc[-1])
    t_s, share = np.append(0.0, use.t_s), np.append(0.0, use.share)
    axes.fill_between(t_s, share, step="post", color=palette.PALETTE["sky"], alpha=0.4, linewidth=0)
    axes.step(t_s, share, where="post", color=palette.PALETTE["blue"], linewidth=0.8)
    for t_s in rounds["t_end_s"]:
        axes.axvline(t_s, **_LINES["end of a round"])
    axes.axhline(mean, **_LINES["mean of the run"])
    axes.set(xlim=(begin_s, end_s), ylim=(0, 1.04))
