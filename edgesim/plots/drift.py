"""The class mix of devices over a run, before it is run."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from edgesim.base.arrays import Floats
from edgesim.plots import style


def draw_drift(x: Floats, shares: Floats, in_seconds: bool, title: str) -> Figure:
    """Rounds or simulated seconds ``x`` [K] on the x axis, classes on the y axis, darker for a larger share [K, C]."""
    classes = shares.shape[1]
    with style.figure(style.PAGE_IN, float(np.clip(0.12 * classes, 1.2, 4.0)) + 0.9) as figure:
        axes = figure.subplots()
        half = (x[1] - x[0]) / 2 if len(x) > 1 else 0.5
        # Each column stands for the instants around its own.
        image = axes.imshow(
            shares.T,
            cmap="Blues",
            vmin=0.0,
            extent=(x[0] - half, x[-1] + half, -0.5, classes - 0.5),
            origin="lower",
            aspect="auto",
            interpolation="none",
        )
        axes.set_title(title, loc="left")
        axes.set_xlabel("simulated time (s)" if in_seconds else "communication round")
        axes.set_ylabel("class")
        for axis in (axes.yaxis,) if in_seconds else (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True, nbins=10, min_n_ticks=1))
        figure.colorbar(image, ax=axes, label="share of samples", pad=0.02)
    return figure
