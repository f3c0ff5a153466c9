"""Who was there, who took part and who arrived, over the hours of the day."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from edgesim.analysis.runs import Run
from edgesim.analysis.statistics import mean_interval
from edgesim.plots import style

DAY_S = 86_400.0
_COLUMNS = {"candidates": "checked in", "selected": "selected", "arrived": "arrived"}


def spans_a_day(run: Run) -> bool:
    """Whether a run lasts for a day of simulated time, so that its hours say something."""
    return float(run.rounds["t_end_s"].iloc[-1]) >= DAY_S


def draw_participation(runs: Sequence[Run]) -> Figure:
    """Mean devices per round checked in, selected and arrived, by the hour of the round's start; 95 % over seeds.

    Hour 0 is the start of the run's clock, and with it of its trace.
    """
    tables = [by_hour(run.rounds) for run in runs]
    names = [name for name in _COLUMNS if any(table[name].notna().any() for table in tables)]
    styles = style.line_styles(list(_COLUMNS.values()))
    with style.figure(style.COLUMN_IN, 2.3) as figure:
        axes = figure.subplots()
        for name in names:
            columns = np.array([table[name].to_numpy() for table in tables]).T
            bands = [mean_interval(column[~np.isnan(column)]) for column in columns]
            look = styles[_COLUMNS[name]]
            hours = np.arange(24) + 0.5
            axes.plot(hours, [band.mean for band in bands], label=_COLUMNS[name], **look.marked(every=4))
            if len(runs) > 1:
                low, high = [band.low for band in bands], [band.high for band in bands]
                axes.fill_between(hours, low, high, color=look.color, alpha=0.2, linewidth=0)
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, 24)
        axes.xaxis.set_major_locator(MultipleLocator(4))
        axes.grid(axis="y")
        axes.set_xlabel("hour of the day (h)")
        axes.set_ylabel("devices per round (count)")
        style.legend_below(figure, axes.get_lines(), [_COLUMNS[name] for name in names])
    return figure


def by_hour(rounds: pd.DataFrame) -> pd.DataFrame:
    """Mean candidates, selected and arrived of the rounds that began in each hour of the day, 24 rows."""
    hour = (rounds["t_start_s"] % DAY_S // 3600).astype(int)
    return rounds.groupby(hour)[list(_COLUMNS)].mean().reindex(range(24))
