"""Learning curves of agents: arrivals a round while they train, beside policies that do not learn."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.plots import palette, style
from edgesim.plots.intervals import drawn_interval, note_of_seeds


def draw_learning_curve(
    curves: Mapping[str, tuple[Sequence[int], Sequence[float]]], others: Mapping[str, Sequence[float]]
) -> Figure:
    """Mean arrivals a round over the decisions made in training, a line per agent, which was trained once.

    The ``others`` are level lines: the mean of their arrivals, one value per seed, with the band of its 95 % t interval
    from three seeds on.
    """
    names, note = [*curves, *others], "once" if len(curves) == 1 else "once each"
    bands = {name: drawn_interval(values) for name, values in others.items()}
    banded = [name for name, band in bands.items() if not np.isnan(band.low)]
    texts = [*names, *["95 % band of the dashed lines"][: len(banded)]]
    styles = palette.line_styles(names)
    with style.figure(style.PAGE_IN / 1.5, 2.4, texts) as figure:
        (axes,) = style.panel_grid(figure, [""])
        for name, (steps, arrivals) in curves.items():
            axes.plot(steps, arrivals, **styles[name].marked(max(1, len(steps) // 10)))
        for name, band in bands.items():
            axes.axhline(band.mean, color=styles[name].color, linewidth=0.9, linestyle="--")
            if name in banded:
                axes.axhspan(band.low, band.high, color=styles[name].color, alpha=0.15, linewidth=0)
        seeds = note_of_seeds([len(values) for values in others.values()] or [1])
        dashed = seeds.replace("\n", "\ndashed: ")
        axes.set(xlabel="decisions in training", ylabel=f"arrivals per round\nagents: trained {note}{dashed}")
        axes.set_xlim(left=0)
        handles = [Line2D([], [], **styles[name].marked(1)) for name in curves]
        handles += [Line2D([], [], color=styles[name].color, linewidth=0.9, linestyle="--") for name in others]
        style.legend_below(figure, [*handles, style.band_patch()][: len(texts)], texts)
    return figure
