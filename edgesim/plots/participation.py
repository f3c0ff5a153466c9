"""Numbers of candidates, participants and arrivals over the hours of the day."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator

from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats
from edgesim.plots import palette, style
from edgesim.plots.intervals import LEAST_SEEDS, drawn_interval, note_of_seeds
from edgesim.plots.panel_figures import draw_means

DAY_S = 86_400.0
_COLUMNS = {"candidates": "checked in", "selected": "selected", "arrived": "arrived"}


def spans_a_day(run: RunFolder) -> bool:
    """Whether a run lasts a day of simulated time or more, so that all hours of the day occur."""
    return float(run.rounds["t_end_s"].iloc[-1]) >= DAY_S


def draw_participation(runs: Sequence[RunFolder]) -> Figure:
    """Mean devices per round, checked in above, selected and arrived below, by the hour of the round's start.

    Bands are 95 % t intervals over three seeds or more. Hour 0 is the start of the run's clock and of its trace. The
    lower axis does not begin at 0, since arrivals differ little from selected devices.
    """
    tables = [by_hour(run.rounds) for run in runs]
    styles = palette.line_styles(list(_COLUMNS.values()))
    texts = list(_COLUMNS.values()) + (["95 % band"] if len(runs) >= LEAST_SEEDS else [])
    with style.figure(style.COLUMN_IN, 2.8, texts) as figure:
        above, below = figure.subplots(2, 1, sharex=True)
        for axes, names in ((above, ["candidates"]), (below, ["selected", "arrived"])):
            for name in names:
                _draw_hours(axes, [table[name].to_numpy() for table in tables], _COLUMNS[name], styles[_COLUMNS[name]])
            axes.grid(axis="y")
            axes.margins(y=0.1)
            axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        above.set_ylim(bottom=0)
        below.set(xlim=(0, 24), xlabel="hour of the day (h)")
        below.xaxis.set_major_locator(MultipleLocator(4))
        figure.supylabel("devices per round" + note_of_seeds([len(runs)]), fontsize=8)
        lines = [*above.get_lines(), *below.get_lines()]
        style.legend_below(figure, [*lines, style.band_patch()][: len(texts)], texts)
    return figure


def _draw_hours(axes: Axes, seeds: Sequence[Floats], label: str, look: palette.LineStyle) -> None:
    """Draw the mean over seeds of a quantity by hour, [24] per seed, with its interval for three seeds or more."""
    bands = [drawn_interval(column[~np.isnan(column)]).within(0) for column in np.array(seeds).T]
    hours = np.arange(24) + 0.5
    draw_means(axes, hours, bands, banded=len(seeds) >= LEAST_SEEDS, label=label, **look.marked(every=4))


def by_hour(rounds: pd.DataFrame) -> pd.DataFrame:
    """Mean candidates, selected and arrived of the rounds that began in each hour of the day, 24 rows."""
    hour = (rounds["t_start_s"] % DAY_S // 3600).astype(int)
    return rounds.groupby(hour)[list(_COLUMNS)].mean().reindex(range(24))
