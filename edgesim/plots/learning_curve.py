"""Learning curves of agents: arrivals a round while they train, beside policies that do not learn."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.plots import palette, style


def draw_learning_curve(
    curves: Mapping[str, tuple[Sequence[int], Sequence[float]]], others: Mapping[str, float]
) -> Figure:
    """Mean arrivals a round over the decisions made in training, a line per agent; the ``others`` are level lines."""
    names = [*curves, *others]
    styles = palette.line_styles(names)
    with style.figure(style.PAGE_IN / 1.5, 2.4, names) as figure:
        (axes,) = style.panel_grid(figure, [""])
        for name, (steps, arrivals) in curves.items():
            axes.plot(steps, arrivals, **styles[name].marked(max(1, len(steps) // 10)))
        for name, mean in others.items():
            axes.axhline(mean, color=styles[name].color, linewidth=0.9, linestyle="--")
        axes.set(xlabel="decisions in training", ylabel="arrivals per round, mean")
        axes.set_xlim(left=0)
        handles = [Line2D([], [], **styles[name].marked(1)) for name in curves]
        handles += [Line2D([], [], color=styles[name].color, linewidth=0.9, linestyle="--") for name in others]
        style.legend_below(figure, handles, names)
    return figure
