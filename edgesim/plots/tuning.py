"""Figures of a tuning: objectives over trials, the Pareto front, importance of knobs, contours over two of them."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from edgesim.analysis.measures import TO_TARGET
from edgesim.base.arrays import Floats
from edgesim.plots import palette, style
from edgesim.plots.groups import quantity
from edgesim.plots.intervals import LEAST_SEEDS

_COLOR, _BEST, _OTHER = palette.PALETTE["blue"], palette.PALETTE["vermilion"], palette.PALETTE["grey"]
_COUNTS, _BOUND, _SO_FAR = "trial, mean over seeds", "given up, or target not reached: at least this", "best so far"
_LEAST_POINTS = 6
"""Trials from which contours are drawn between them."""


def draw_history(trials: pd.DataFrame, measures: Mapping[str, bool]) -> Figure:
    """A panel for each measure (with whether it is maximised): its value in each trial, bounds, and the best so far."""
    handles: dict[str, Line2D] = {}
    if trials["counts"].any():
        handles[_COUNTS] = Line2D([], [], color=_COLOR, marker="o", linestyle="none")
        handles[_SO_FAR] = Line2D([], [], color=_BEST)
    if any(len(_bounds(trials, name)) for name in measures):
        handles[_BOUND] = Line2D([], [], color=_OTHER, marker="^", linestyle="none", mfc="none")
    with style.figure(*style.panel_size(len(measures), 2.2), list(handles)) as figure:
        for axes, (name, is_maximised) in zip(_panels(figure, len(measures)), measures.items(), strict=True):
            good, bounds = trials[trials["counts"]], _bounds(trials, name)
            axes.plot(good["trial"], good[name], "o", color=_COLOR)
            axes.plot(bounds["trial"], bounds[f"{name}_bound"] if len(bounds) else [], "^", color=_OTHER, mfc="none")
            if len(good):
                best = good[name].cummax() if is_maximised else good[name].cummin()
                axes.step([*good["trial"], trials["trial"].max()], [*best, best.iloc[-1]], where="post", color=_BEST)
            axes.set(xlabel="number of the trial", ylabel=quantity(name).axis)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if handles:
            style.legend_below(figure, list(handles.values()), list(handles))
    return figure


def draw_front(trials: pd.DataFrame, front: pd.DataFrame, measures: Sequence[str]) -> Figure:
    """A panel for every two measures: all trials that count and, with 95 % intervals, those of the Pareto front."""
    pairs = list(combinations(measures, 2))
    legend = [_COUNTS, "Pareto front, 95 % interval from 3 seeds on"]
    with style.figure(*style.panel_size(len(pairs), 2.4), legend) as figure:
        for axes, (x, y) in zip(_panels(figure, len(pairs)), pairs, strict=True):
            good, ordered = trials[trials["counts"]], front.sort_values(x)
            axes.plot(good[x], good[y], "o", color=_OTHER)
            if len(pairs) == 1:
                axes.plot(ordered[x], ordered[y], color=_BEST, drawstyle="steps-post", linewidth=0.8)
            axes.errorbar(
                ordered[x], ordered[y], _halves(ordered, y), _halves(ordered, x), "o", color=_BEST, elinewidth=0.6
            )
            axes.set(xlabel=quantity(x).axis, ylabel=quantity(y).axis)
        handles = [Line2D([], [], color=color, marker="o", linestyle="none") for color in (_OTHER, _BEST)]
        style.legend_below(figure, handles, legend)
    return figure


def draw_importance(importances: Mapping[str, Mapping[str, float]]) -> Figure:
    """A panel for each measure: a bar for each knob, its share of what tells the best trials from the others."""
    known = {measure: shares for measure, shares in importances.items() if shares}
    names = list(next(iter(known.values())))
    with style.figure(*style.panel_size(len(known), 0.9 + 0.25 * len(names))) as figure:
        for axes, (measure, shares) in zip(_panels(figure, len(known)), known.items(), strict=True):
            values = [shares[name] for name in names]
            axes.barh([quantity(name).name for name in names], values, color=_COLOR, height=0.6)
            for place, value in enumerate(values):
                axes.text(value + 0.01, place, f"{value:.2f}", va="center", fontsize=7)
            axes.set(xlim=(0, 1.15), xlabel=f"importance for {quantity(measure).name}")
            axes.grid(axis="x")
            axes.grid(visible=False, axis="y")
            axes.invert_yaxis()
    return figure


def draw_contour(trials: pd.DataFrame, x: str, y: str, measures: Sequence[str], logs: Sequence[str]) -> Figure:
    """A panel for each measure: its value over two knobs, between the trials that count; others are crosses.

    ``logs`` are the knobs whose axes are logarithmic.
    """
    good, rest = trials[trials["counts"]], trials[~trials["counts"]]
    across, up = (quantity(name, float(trials[name].abs().max())) for name in (x, y))
    legend = [_COUNTS] + (["given up, failed or target not reached"] if len(rest) else [])
    with style.figure(*style.panel_size(len(measures), 2.4), legend) as figure:
        for axes, measure in zip(_panels(figure, len(measures)), measures, strict=True):
            values = good[measure].to_numpy(dtype=np.float64)
            places = good[x].to_numpy() * across.factor, good[y].to_numpy() * up.factor
            shown = None
            if len(values) >= _LEAST_POINTS and _spans_a_plane(*places):
                shown = axes.tricontourf(*places, values, levels=10, cmap="viridis", alpha=0.8)
            dots = axes.scatter(*places, c=values, cmap="viridis", edgecolors="black", linewidths=0.4, s=16, zorder=3)
            axes.plot(rest[x] * across.factor, rest[y] * up.factor, "x", color=palette.PALETTE["black"], markersize=3)
            figure.colorbar(shown or dots, ax=axes, label=quantity(measure).axis)
            axes.grid(visible=False)
            axes.set(xlabel=across.axis, ylabel=up.axis)
            axes.use_sticky_edges = False
            axes.margins(0.06)
            for name, axis, scale in ((x, axes.xaxis, axes.set_xscale), (y, axes.yaxis, axes.set_yscale)):
                if name in logs:
                    scale("log")
                    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
                    axis.set_minor_formatter(NullFormatter())
        handles = [
            Line2D([], [], color=_COLOR, marker="o", linestyle="none", mec="black"),
            Line2D([], [], color="black", marker="x", linestyle="none"),
        ]
        style.legend_below(figure, handles[: len(legend)], legend)
    return figure


def _bounds(trials: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Trials of which only a bound of a measure is known."""
    column = f"{measure}_bound"
    if column not in trials:
        return trials.head(0)
    return trials[~trials["counts"] & trials[column].notna()]


def _halves(rows: pd.DataFrame, measure: str) -> Floats:
    """Lengths of the intervals to both sides, [2, rows]; 0 where there are too few seeds for one.

    Intervals of times and energies to a target are cut at 0, which a t interval of few values can exceed.
    """
    low, high = rows[f"{measure}_low"], rows[f"{measure}_high"]
    if measure in TO_TARGET:
        low = low.clip(lower=0.0)
    halves = np.array([rows[measure] - low, high - rows[measure]], dtype=np.float64)
    return np.nan_to_num(np.where(rows["seeds"] >= LEAST_SEEDS, halves, 0.0))


def _spans_a_plane(x: Floats, y: Floats) -> bool:
    if not (np.ptp(x) and np.ptp(y)):
        return False
    points = np.stack([x / np.ptp(x), y / np.ptp(y)])
    return bool(np.linalg.matrix_rank(points - points.mean(axis=1, keepdims=True)) == 2)


def _panels(figure: Figure, count: int) -> list[Axes]:
    """Panels that share no axis."""
    return style.panel_grid(figure, [""] * count, sharey=False)
