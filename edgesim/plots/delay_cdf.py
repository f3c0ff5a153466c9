"""Distribution of the durations of computing, of uploads and of rounds."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy import stats

from edgesim.activities import COMPUTE, UPLOAD
from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Booleans, Floats
from edgesim.plots import palette, style
from edgesim.plots.groups import Panel, Series, labels_of

KINDS = (COMPUTE, UPLOAD, "round")
_MOST_POINTS = 400


def draw_delay_cdf(panels: Sequence[Panel]) -> Figure:
    """CDFs of compute, upload and round durations: a row per panel, a column per kind, a line per series.

    Work that was cut short (by the deadline, the close or a drop-out) counts as lasting longer than observed:
    the Kaplan-Meier estimate, whose curve ends below 1 if the longest durations were all cut short.
    """
    labels = labels_of(panels)
    styles = palette.line_styles(labels)
    legend = labels if len(labels) > 1 else []
    with style.figure(style.PAGE_IN, 1.75 * len(panels), legend) as figure:
        grid = figure.subplots(len(panels), len(KINDS), squeeze=False, sharey=True, sharex="col")
        curves = [[_curves(series) for series in panel.series] for panel in panels]
        right_s = [1.05 * max(float(by_kind[k][0][-1]) for row in curves for by_kind in row) for k in range(len(KINDS))]
        for row, panel, by_series in zip(grid, panels, curves, strict=True):
            for series, by_kind in zip(panel.series, by_series, strict=True):
                for axes, (times, shares), end_s in zip(row, by_kind, right_s, strict=True):
                    # A dash has an entry in a legend, which a single line does not need.
                    look = styles[series.label].line() if legend else {"color": styles[series.label].color}
                    axes.step([*times, end_s], [*shares, shares[-1]], where="post", **look)
            row[0].set_ylabel("share of durations")
            for axes in row:
                axes.grid()
                axes.set_ylim(0, 1.02)
        for i, axes in enumerate(grid.ravel()):
            number, column = divmod(i, len(KINDS))
            where = f", {panels[number].title}" if panels[number].title else ""
            axes.set_title(f"({style.letter(i)}) {KINDS[column]}{where}")
        for axes, kind, end_s in zip(grid[-1], KINDS, right_s, strict=True):
            axes.set(xlabel=f"{kind} duration (s)", xlim=(0, end_s or 1))
        if legend:
            handles = [Line2D([], [], **styles[label].line()) for label in labels]
            style.legend_below(figure, handles, labels)
    return figure


def _curves(series: Series) -> list[tuple[Floats, Floats]]:
    durations = [_durations(run) for run in series.runs]
    return [cdf(*(np.concatenate([of_run[kind][part] for of_run in durations]) for part in (0, 1))) for kind in KINDS]


def _durations(run: RunFolder) -> dict[str, tuple[Floats, Floats]]:
    """Durations in seconds of one run, by kind: those that were complete, and those cut short."""
    rounds = run.rounds
    close_s = rounds[["round", "t_end_s"]].rename(columns={"t_end_s": "close_s"})
    activities = run.activities.merge(close_s, on="round")
    length_s = (activities["t_end_s"] - activities["t_start_s"]).to_numpy()
    whole = _seen_to_its_end(activities)
    durations = {"round": ((rounds["t_end_s"] - rounds["t_start_s"]).to_numpy(), np.empty(0))}
    for kind in (COMPUTE, UPLOAD):
        mine = (activities["activity"] == kind).to_numpy()
        durations[kind] = (length_s[mine & whole], length_s[mine & ~whole])
    return durations


def _seen_to_its_end(activities: pd.DataFrame) -> Booleans:
    # An unscheduled row ends at its own finish or at the close, whichever is first.
    finished = (activities["outcome"] == "unscheduled") & (activities["t_end_s"] < activities["close_s"])
    return np.asarray(activities["outcome"].isin(["done", "skipped", "kept"]) | finished, dtype=bool)


def cdf(whole_s: Floats, cut_s: Floats) -> tuple[Floats, Floats]:
    """Points (seconds, share) of the empirical CDF, of which ``cut_s`` [m] are only lower bounds.

    Starts at share 0 and has at most about 400 points. Kaplan and Meier, JASA 53(282), 1958.
    """
    if whole_s.size == 0:
        return np.zeros(1), np.zeros(1)
    estimate = stats.ecdf(stats.CensoredData(uncensored=whole_s, right=cut_s)).cdf
    times, shares = np.asarray(estimate.quantiles), np.asarray(estimate.probabilities)
    shown = np.unique(np.linspace(0, times.size - 1, _MOST_POINTS).round().astype(int))
    return np.concatenate([times[:1], times[shown]]), np.concatenate([[0.0], shares[shown]])
