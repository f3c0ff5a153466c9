"""Final accuracy as bars (FedDance, table 3, figs. 15 and 16)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from edgesim.analysis.metrics import final_accuracy
from edgesim.plots.groups import Panel
from edgesim.plots.intervals import drawn_interval, spread_note
from edgesim.plots.panel_figures import row_panels


def draw_final_accuracy(panels: Sequence[Panel]) -> Figure:
    """Mean of the last five evaluations with the 95 % t interval over three seeds or more, a bar per series.

    Intervals are cut to the range of an accuracy. The axis begins just below the least bar, to show the differences.
    """
    least, most = 1.0, 0.0
    with row_panels(panels, "final test accuracy (1)" + spread_note(panels)) as drawn:
        for axes, panel in drawn.each:
            for series in panel.series:
                band = drawn_interval([final_accuracy(run.rounds) for run in series.runs]).within(0, 1)
                low, high = drawn.bar(axes, series.label, band, "{:.3f}")
                least, most = min(least, low), max(most, high)
        start = max(0.0, least - 0.05)
        # Room for the number beside the longest bar.
        axes.set_xlim(start, most + (0.2 if len(panels) == 1 else 0.3) * (most - start))
    return drawn.figure
