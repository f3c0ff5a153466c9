"""Paired differences of accuracy over time: what a choice is ahead of the reference, seed by seed."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.courses import Over, accuracy_course
from edgesim.analysis.pairing import Pairing
from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats
from edgesim.plots import palette, style
from edgesim.plots.accuracy import HOUR_S, LABELS, longest_s
from edgesim.plots.common_past import COMMON_PAST, LOOK, left_past, mark_past
from edgesim.plots.differences import against
from edgesim.plots.groups import Series, labels_of, panels_of
from edgesim.plots.intervals import LEAST_SEEDS, drawn_interval, spread_note
from edgesim.plots.panel_figures import draw_means


def draw_difference_curves(found: Sequence[Pairing], over: Over, reference: str) -> Figure:
    """A panel per choice, a line per deadline: accuracy minus that of the reference, mean over seeds.

    Over rounds: those that both runs of every pair evaluated. Over seconds: each model holds until the next test. Bands
    are the 95 % t interval of the paired differences at each point, not corrected, from three seeds on.
    """
    lines = panels_of([run for one in found for run, _ in one.runs])
    partner = {run.folder: other for one in found for run, other in one.runs}
    labels, titles = labels_of(lines), [line.title for line in lines]
    several = len(lines) > 1
    styles = palette.line_styles(titles)
    in_hours = over == "seconds" and longest_s(lines) >= HOUR_S
    width, height = style.panel_size(len(labels), 1.55 if len(labels) > 3 else 2.0)
    note = spread_note(lines, "95 % bands of the paired differences").removeprefix("\n")
    runs = [run for one in found for pair in one.runs for run in pair]
    past = [COMMON_PAST] if any(run.fork for run in runs) else []
    legend = [*(titles if several else ()), *past, *([note] if note else ())]
    handles = [Line2D([], [], **styles[title].line()) for title in titles if several]
    with style.figure(width, height, legend) as figure:
        grid = dict(zip(labels, style.panel_grid(figure, labels), strict=True))
        for axes in grid.values():
            axes.sharex(grid[labels[0]])
            axes.axhline(0, color="black", linewidth=0.7)
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=over == "rounds"))
        for line in lines:
            for series in line.series:
                places, ahead = _ahead(series, [partner[run.folder] for run in series.runs], over)
                places = places / HOUR_S if in_hours else places
                bands = [drawn_interval(column) for column in ahead.T]
                look, axes = styles[line.title], grid[series.label]
                left = left_past([*series.runs, *(partner[run.folder] for run in series.runs)], over)
                mark_past(axes, [place / HOUR_S if in_hours else place for place in left])
                banded, steps = len(series.runs) >= LEAST_SEEDS, over == "seconds"
                draw_means(axes, places, bands, banded=banded, steps=steps, linewidth=1.0, **look.line())
        axes_of = list(grid.values())
        for axes in axes_of[:: style.abreast(len(axes_of))]:
            axes.set_ylabel("difference of\naccuracy (1)")
        across = style.abreast(len(axes_of))
        for axes in axes_of[-across:]:
            axes.set_xlabel("simulated time (h)" if in_hours else LABELS[over])
        axes_of[0].set_xlim(left=0)
        figure.suptitle(against(found, reference), fontsize=8)
        handles += [Line2D([], [], **LOOK) for _ in past]
        if legend:
            style.legend_below(figure, [*handles, *([Line2D([], [], linestyle="none")] if note else ())], legend)
    return figure


def _ahead(series: Series, partners: Sequence[RunFolder], over: Over) -> tuple[Floats, Floats]:
    """Positions on the x axis [p] and by how much each seed's run is ahead of its partner there [seeds, p]."""
    places, values = accuracy_course((*series.runs, *partners), over)
    mine, theirs = np.split(values, 2)
    return places, mine - theirs
