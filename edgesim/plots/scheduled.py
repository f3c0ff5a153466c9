"""How many clients a policy schedules, with and without a new class (FedTeddi, fig. 4)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from edgesim.analysis.metrics import new_class_devices, scheduled_by_class
from edgesim.analysis.runs import Run
from edgesim.plots import style
from edgesim.plots.groups import Panel, Series, labels_of

_NEW, _OLD = "#444444", "#bbbbbb"
_PARTS = ("with a new class", "only old classes")


def draw_scheduled(panels: Sequence[Panel]) -> Figure:
    """Stacked bars of mean scheduled clients per round, over rounds and seeds, a bar per series.

    Where no device ever gets a new class, or no run knows classes, the bars are plain.
    """
    split = _is_split([run for panel in panels for series in panel.series for run in series.runs])
    width, height = style.panel_size(len(panels), 1.8)
    height += style.slanted_height_in(labels_of(panels)) * style.rows_of(len(panels))
    with style.figure(width, height + (style.legend_height_in(_PARTS, width) if split else 0)) as figure:
        grid = style.panel_grid(figure, [panel.title for panel in panels])
        for axes, panel in zip(grid, panels, strict=True):
            places = np.arange(len(panel.series))
            means = np.array([mean_by_class(series) for series in panel.series])
            if split:
                axes.bar(places, means[:, 0], 0.7, color=_NEW, hatch="////", edgecolor="white", linewidth=0)
                axes.bar(places, means[:, 1], 0.7, bottom=means[:, 0], color=_OLD)
            else:
                axes.bar(places, means.sum(axis=1), 0.7, color=_OLD)
            style.slanted_names(axes, [series.label for series in panel.series])
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel("scheduled clients\n(count per round)")
        if split:
            new = Patch(facecolor=_NEW, hatch="////", edgecolor="white", linewidth=0)
            old = Patch(facecolor=_OLD, linewidth=0)
            style.legend_below(figure, [new, old], _PARTS)
    return figure


def mean_by_class(series: Series) -> tuple[float, float]:
    """Mean scheduled clients per round, with a new class and without: over rounds, then over seeds."""
    counts = [scheduled_by_class(run.rounds, run.activities, run.devices) for run in series.runs]
    new = np.mean([count["with_new"].mean() for count in counts])
    return float(new), float(np.mean([count["only_old"].mean() for count in counts]))


def _is_split(runs: Sequence[Run]) -> bool:
    """Whether all runs know which classes their devices hold, frame after frame, and some device gets a new one."""
    tables = [new_class_devices(run.devices) for run in runs]
    return all(not table.empty for table in tables) and any(table["has_new_class"].any() for table in tables)
