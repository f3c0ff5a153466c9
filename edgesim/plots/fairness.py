"""Shares of the devices in the updates used."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from edgesim.analysis.fairness import concentration, effective_devices, participations
from edgesim.plots.groups import Panel
from edgesim.plots.intervals import mean_note
from edgesim.plots.panel_figures import line_panels

_MARK = "effective number of devices"


def draw_fairness(panels: Sequence[Panel]) -> Figure:
    """Share of all updates used that came from the k devices with the most: mean over seeds, a line per series.

    Each line is marked at its `effective_devices` (as many equally used devices would be as uneven), a mean over the
    seeds that used any update.
    """
    with line_panels(panels, "share of the updates used" + mean_note(panels), 2.3, [_MARK]) as drawn:
        drawn.lines[_MARK] = Line2D([], [], linestyle="none", marker="o", color="grey")
        for axes, panel in drawn.each:
            for series in panel.series:
                look = drawn.styles[series.label]
                counts = [participations(run.updates, run.devices) for run in series.runs]
                curve = np.mean([concentration(count) for count in counts], axis=0)
                effective = [effective_devices(count) for count in counts if count.any()]
                devices = np.arange(1, len(curve) + 1)
                axes.plot(devices, curve, **look.line())
                if effective:
                    place = float(np.mean(effective))
                    height = np.interp(place, devices, curve)
                    axes.plot(place, height, marker=look.marker, color=look.color, clip_on=False)
                drawn.lines.setdefault(series.label, Line2D([], [], **look.marked(1)))
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.set(ylim=(0, 1.02), xlabel="number of devices with the most updates")
        axes.set_xlim(left=1)
    return drawn.figure
