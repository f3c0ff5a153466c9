"""Stacked bars: the parts of a whole, one bar per series of runs or per round of a run."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats
from edgesim.plots import style
from edgesim.plots.common_past import COMMON_PAST, mark_past
from edgesim.plots.groups import Panel
from edgesim.plots.intervals import drawn_interval, spread_note
from edgesim.plots.panel_figures import row_panels

MOST_BARS = 60
"""Rounds of a longer run are drawn in blocks of equally many rounds."""


@dataclass(frozen=True)
class Part:
    """The look and name of one part of the whole."""

    label: str
    color: str
    hatch: str = ""

    def patch(self) -> dict[str, Any]:
        """Keyword arguments of the part's bars and of its entry in the legend."""
        return {"facecolor": self.color, "hatch": self.hatch, "edgecolor": "white", "linewidth": 0}


def draw_stacks(
    panels: Sequence[Panel],
    parts: Mapping[str, Part],
    of: Callable[[RunFolder], Mapping[str, float]],
    label: str,
    of_whole: bool = True,
) -> Figure:
    """A bar per series: the mean over its seeds of each part of its runs, stacked in the order of ``parts``.

    ``of`` gives the parts of one run by name. Bars of three seeds or more have the 95 % t interval over seeds of their
    sum or, if not ``of_whole``, of the first part, for shares, whose sum is always 1. The legend names the parts that
    occur, if there can be several.
    """
    values = [
        np.array([_mean_parts([of(run) for run in series.runs], parts, of_whole) for series in panel.series])
        for panel in panels
    ]
    shown = _occurring(parts, np.concatenate([table[:, : len(parts)] for table in values]))
    texts = [part.label for part in shown.values()] if len(parts) > 1 else []
    first = next(iter(parts.values())).label
    spread = "95 % interval" if of_whole else f"95 % interval of the {first} share"
    with row_panels(panels, label + spread_note(panels, spread), texts) as drawn:
        for (axes, panel), table in zip(drawn.each, values, strict=True):
            places = np.array([drawn.labels.index(series.label) for series in panel.series])
            left = np.zeros(len(places))
            for name, widths in zip(parts, table.T, strict=False):
                if name in shown:
                    axes.barh(places, widths, 0.7, left=left, **parts[name].patch())
                left = left + widths
            ends, at = table[:, -2:].T, left if of_whole else table[:, 0]
            known = ~np.isnan(ends[0])
            errors = axes.errorbar(
                at[known], places[known], xerr=ends[:, known], fmt="none", ecolor="black", elinewidth=0.6, capsize=2
            )
            style.show_error_bars(errors)
        # Not before all is drawn: the panels share their scale.
        axes.set_xlim(left=0)
        if texts:
            _legend(drawn.figure, shown)
    return drawn.figure


def draw_stacks_over_rounds(
    table: pd.DataFrame, parts: Mapping[str, Part], label: str, *, share: bool, past: Collection[float] = ()
) -> Figure:
    """The parts of every round of one run, stacked; a long run in blocks of rounds, each by its mean.

    A dotted line stands behind each of the rounds ``past``, where a fork leaves the past of its run.

    ``table`` has a row per round (its number is the index, without gaps) and a column per part. With ``share`` the
    parts of each block are divided by their sum; a block whose sum is zero stays empty.
    """
    block = -(-len(table) // MOST_BARS)
    starts = np.arange(0, len(table), block)
    rounds = table.index.to_numpy()
    edges = np.append(rounds[starts], rounds[-1] + 1) - 0.5
    sums = np.add.reduceat(table[list(parts)].to_numpy(dtype=np.float64), starts, axis=0)
    whole = sums.sum(axis=1) if share else np.diff(edges)
    values = np.divide(sums, whole[:, None], out=np.zeros_like(sums), where=whole[:, None] > 0)
    shown = _occurring(parts, values)
    further = [COMMON_PAST] if past else []
    with style.figure(style.COLUMN_IN, 1.8, [*(part.label for part in shown.values()), *further]) as figure:
        (axes,) = style.panel_grid(figure, [""])
        bottom = np.zeros(len(starts))
        for name, heights in zip(parts, values.T, strict=True):
            if name in shown:
                axes.stairs(bottom + heights, edges, baseline=bottom, fill=True, **parts[name].patch())
            bottom = bottom + heights
        axes.set(xlim=(edges[0], edges[-1]), ylim=(0, None), ylabel=label)
        axes.set_xlabel("communication round" if block == 1 else f"communication round (means over {block} rounds)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        line = mark_past(axes, [round + 0.5 for round in past])
        _legend(figure, shown, {} if line is None else {COMMON_PAST: line})
    return figure


def _mean_parts(runs: Sequence[Mapping[str, float]], parts: Mapping[str, Part], of_whole: bool) -> Floats:
    """Mean of each part over runs, then the distances from a mean to the ends of its interval, [parts + 2].

    The mean is that of the parts' sum or, if not ``of_whole``, of the first part, which is a share.
    """
    table = np.array([[amounts[name] for name in parts] for amounts in runs])
    band = drawn_interval(table.sum(axis=1)).within(0) if of_whole else drawn_interval(table[:, 0]).within(0, 1)
    return np.append(table.mean(axis=0), [band.mean - band.low, band.high - band.mean])


def _occurring(parts: Mapping[str, Part], values: Floats) -> dict[str, Part]:
    """The parts with a value above zero in any row of ``values`` [rows, parts]."""
    return {name: part for (name, part), column in zip(parts.items(), values.T, strict=True) if (column > 0).any()}


def _legend(figure: Figure, shown: Mapping[str, Part], lines: Mapping[str, Line2D] = MappingProxyType({})) -> None:
    if shown or lines:
        handles = [*(Patch(**part.patch()) for part in shown.values()), *lines.values()]
        style.legend_below(figure, handles, [*(part.label for part in shown.values()), *lines])
