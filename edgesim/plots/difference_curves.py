"""Paired differences of accuracy over time: what a choice is ahead of the reference, seed by seed."""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.accuracy_series import Over, accuracy_series
from edgesim.analysis.pairing import Pairing
from edgesim.analysis.runs import Knob, RunFolder
from edgesim.base.arrays import Floats
from edgesim.plots import palette, style
from edgesim.plots.accuracy import HOUR_S, LABELS, longest_s
from edgesim.plots.common_past import LOOK, left_past, mark_past, past_text
from edgesim.plots.differences import against
from edgesim.plots.groups import Series, labels_of, panels_of
from edgesim.plots.intervals import LEAST_SEEDS, drawn_interval, mean_note
from edgesim.plots.panel_figures import draw_means


def draw_difference_curves(pairings: Sequence[Pairing], over: Over, knob: str, reference: Knob) -> Figure:
    """A panel per choice, a line per deadline: accuracy minus that of the reference, mean over seeds.

    The ``reference`` is a value of ``knob``. Over rounds: those that both runs of every pair evaluated. Over seconds:
    each model holds until the next test. Bands are the 95 % t interval of the paired differences at each point, not
    corrected, from three seeds on.
    """
    lines = panels_of([run for pairing in pairings for run, _ in pairing.runs])
    partner = {run.folder: other for pairing in pairings for run, other in pairing.runs}
    labels, titles = labels_of(lines), [line.title for line in lines]
    several = len(lines) > 1
    styles = palette.line_styles(titles)
    in_hours = over == "seconds" and longest_s(lines) >= HOUR_S
    width, height = style.panel_size(len(labels), 1.55 if len(labels) > 3 else 2.0)
    has_bands = any(len(series.runs) >= LEAST_SEEDS for line in lines for series in line.series)
    spread = ["95 % band of the paired differences"] * has_bands
    past = past_text([run for pairing in pairings for pair in pairing.runs for run in pair])
    legend = [*(titles if several else ()), *past, *spread]
    handles: list[Artist] = [Line2D([], [], **styles[title].line()) for title in titles if several]
    heading = against(pairings, knob, reference)
    # A single panel's own title would say once more what the heading begins with.
    is_named = len(labels) == 1 and heading.startswith(f"{labels[0]} against ")
    with style.figure(width, height, legend) as figure:
        grid = dict(zip(labels, style.panel_grid(figure, [""] if is_named else labels), strict=True))
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
        every, across = list(grid.values()), style.abreast(len(grid))
        for axes in every[::across]:
            axes.set_ylabel("difference of\naccuracy" + mean_note(lines))
        for axes in every[-across:]:
            axes.set_xlabel("simulated time (h)" if in_hours else LABELS[over])
        every[0].set_xlim(left=0)
        figure.suptitle(heading, fontsize=8)
        handles += [Line2D([], [], **LOOK) for _ in past]
        if legend:
            style.legend_below(figure, [*handles, *(style.band_patch() for _ in spread)], legend)
    return figure


def _ahead(series: Series, partners: Sequence[RunFolder], over: Over) -> tuple[Floats, Floats]:
    """Positions on the x axis [p] and by how much each seed's run is ahead of its partner there [seeds, p]."""
    places, values = accuracy_series((*series.runs, *partners), over)
    mine, theirs = np.split(values, 2)
    return places, mine - theirs
