"""Throughput of a server: updates merged in a simulated minute."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from edgesim.analysis.needed import need_runs
from edgesim.plots.groups import Panel, runs_of
from edgesim.plots.intervals import drawn_interval, spread_note
from edgesim.plots.panel_figures import row_panels


def draw_throughput(panels: Sequence[Panel]) -> Figure:
    """Updates merged over the simulated minutes of a run's rounds, a bar per series, mean and 95 % t interval."""
    need_runs(runs_of(panels))
    most = 0.0
    with row_panels(panels, "updates merged (1/min)" + spread_note(panels)) as drawn:
        for axes, panel in drawn.each:
            for series in panel.series:
                each = [60 * run.rounds["arrived"].sum() / run.rounds["t_end_s"].max() for run in series.runs]
                most = max(most, drawn.bar(axes, series.label, drawn_interval(each).within(0), "{:.1f}")[1])
        axes.set_xlim(0, 1.25 * most)
    return drawn.figure
