"""Number of samples of each class that each device holds."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.runs import RunFolder
from edgesim.analysis.skew import earth_movers_distances, holdings
from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.plots import style

MOST_DEVICES = 400
"""Most devices drawn, evenly spaced by id; more columns would be too narrow to distinguish."""

#: From a light blue, distinguishable from blank, to a dark one.
_COLORS = ListedColormap(matplotlib.colormaps["Blues"](np.linspace(0.2, 1.0, 256)))


def draw_partition(run: RunFolder) -> Figure:
    """Devices on the x axis, classes on the y axis, darker for more samples, blank for none; a panel per new data.

    The colour scale is logarithmic. A panel's title gives the mean earth mover's distance. Raises `EdgesimError` for a
    run without classes.
    """
    held = holdings(run.devices)
    if not held:
        raise EdgesimError(f"{run.folder}: its devices have no classes; expected a run on data with classes")
    devices, classes = held[0].counts.shape
    shown = np.linspace(0, devices - 1, min(devices, MOST_DEVICES)).round().astype(np.int64)
    width = style.COLUMN_IN if len(shown) <= 40 else style.PAGE_IN
    panel_height = float(np.clip(0.1 * classes, 0.9, 3.2))
    largest = max(int(holding.counts.max()) for holding in held)
    ticks = [10**power for power in range(len(str(largest))) if 10**power < largest / 2] + [largest]
    with style.figure(width, (panel_height + 0.3) * len(held) + 0.5) as figure:
        grid = figure.subplots(len(held), 1, squeeze=False, sharex=True)[:, 0]
        for axes, holding in zip(grid, held, strict=True):
            image = axes.imshow(
                np.ma.masked_equal(holding.counts[shown].T, 0),
                cmap=_COLORS,
                norm=LogNorm(1, max(largest, 2)),
                origin="lower",
                aspect="auto",
                interpolation="none",
            )
            frame = "" if len(held) == 1 else f"frame {holding.when}: "
            axes.set_title(f"{frame}mean EMD {earth_movers_distances(holding.counts).mean():.2f}", loc="left")
            axes.set_ylabel("class")
            axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
        _name_devices(grid[-1], shown, devices)
        bar = figure.colorbar(image, ax=grid, label="samples", pad=0.02)
        bar.set_ticks(ticks, labels=[f"{tick:,}" for tick in ticks])
        bar.ax.minorticks_off()
    return figure


def _name_devices(axes: Axes, shown: Integers, devices: int) -> None:
    even = MaxNLocator(integer=True, nbins=10, min_n_ticks=1).tick_values(0, len(shown) - 1)
    places = [int(place) for place in even if 0 <= place < len(shown)]
    axes.set_xticks(places, [str(shown[place]) for place in places])
    axes.set_xlabel("device" if len(shown) == devices else f"device ({len(shown)} of {devices:,} shown)")
