"""Final accuracy of each series (FedDance, table 3, figs. 15 and 16)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from edgesim.analysis.metrics import final_accuracy
from edgesim.analysis.needed import need_tests
from edgesim.plots.groups import Panel, runs_of
from edgesim.plots.intervals import drawn_interval, spread_note
from edgesim.plots.panel_figures import row_panels


def draw_final_accuracy(panels: Sequence[Panel]) -> Figure:
    """Mean of the last five evaluations with the 95 % t interval over three seeds or more, a point per series.

    Intervals are cut to the range of an accuracy. The axis covers what is drawn; it need not begin at 0. Raises
    `EdgesimError` for a run whose model was never tested.
    """
    need_tests(runs_of(panels))
    least, most = 1.0, 0.0
    with row_panels(panels, "final test accuracy" + spread_note(panels)) as drawn:
        for axes, panel in drawn.each:
            for series in panel.series:
                band = drawn_interval([final_accuracy(run.rounds) for run in series.runs]).within(0, 1)
                low, high = drawn.point(axes, series.label, band, "{:.3f}")
                least, most = min(least, low), max(most, high)
        spread = max(most - least, 0.01)
        # Room for the number beside the point furthest to the right.
        axes.set_xlim(least - 0.05 * spread, most + (0.2 if len(panels) == 1 else 0.3) * spread)
    return drawn.figure
