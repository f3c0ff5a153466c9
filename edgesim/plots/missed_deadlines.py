"""Missed deadlines against the speed of devices."""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.analysis.needed import need_knobs
from edgesim.analysis.runs import RunFolder
from edgesim.plots import palette, style
from edgesim.plots.groups import knob_text, quantity
from edgesim.plots.intervals import LEAST_SEEDS, drawn_interval, note_of_seeds


def draw_missed_deadlines(runs: Sequence[RunFolder], over: str, series: str, panel: str) -> Figure:
    """Share of the uploads that missed the deadline against the knob ``over``, such as the speed of devices.

    A panel per value of the knob ``panel``, a line per value of ``series``; each point is the mean over seeds of the
    share of all devices taken, by any policy, with its 95 % t interval from three seeds on.
    """
    need_knobs(runs, over, series, panel)
    taken: dict[tuple[object, str, float, int], list[int]] = {}
    for run in runs:
        key = run.knobs[panel], str(run.knobs[series]), float(run.knobs[over]), run.seed
        late, selected = taken.get(key, [0, 0])
        taken[key] = [late + int(run.rounds["late"].sum()), selected + int(run.rounds["selected"].sum())]
    labels, panels = (list(dict.fromkeys(key[place] for key in taken)) for place in (1, 0))
    names = [str(label) for label in labels]
    styles = palette.line_styles(names)
    seeds = len({key[3] for key in taken})
    banded = seeds >= LEAST_SEEDS
    texts = [*names, *(["95 % band"] if banded else [])]
    titles = [knob_text(panel, value) for value in panels] if len(panels) > 1 else [""]  # type: ignore[arg-type]
    with style.figure(*style.panel_size(len(panels), 2.2), texts) as figure:
        for axes, value in zip(style.panel_grid(figure, titles), panels, strict=True):
            for name in names:
                shares: dict[float, list[float]] = {}
                for (of_panel, of_series, at, _), (late, selected) in sorted(
                    taken.items(), key=lambda item: item[0][2:]
                ):
                    if (of_panel, of_series) == (value, name) and selected:
                        shares.setdefault(at, []).append(late / selected)
                if shares:
                    bands = [drawn_interval(of).within(0, 1) for of in shares.values()]
                    mean, low, high = np.array(bands).T
                    axes.plot(list(shares), mean, **styles[name].marked(1))
                    axes.fill_between(list(shares), low, high, color=styles[name].color, alpha=0.2, linewidth=0)
            axes.set_xlabel(quantity(over).axis)
        # Once, when all is drawn: the panels share the axis, whose top is no longer fitted from then on.
        figure.axes[0].set_ylim(bottom=0)
        figure.axes[0].set_ylabel("share of uploads that\nmissed the deadline" + note_of_seeds([seeds]))
        handles: list[Artist] = [Line2D([], [], **styles[name].marked(1)) for name in names]
        handles += [style.band_patch()] if banded else []
        style.legend_below(figure, handles, texts)
    return figure
