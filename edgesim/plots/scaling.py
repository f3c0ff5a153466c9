"""Time of a round over the number of devices, on logarithmic scales with the fitted powers."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from edgesim.analysis.convergence import CLOCKS, growth
from edgesim.analysis.needed import need_knobs
from edgesim.analysis.runs import RunFolder
from edgesim.plots import palette, style

_TITLES = {"simulated": "simulated time", "wall": "wall time"}


def draw_scaling(runs: Sequence[RunFolder], series: str) -> Figure:
    """A panel for simulated and one for wall time, a colour per value of the knob ``series``.

    A point is the time of a round in one run, a line the power of the number of devices that `growth` fits to them;
    the legend has its exponent with the 95 % t interval.
    """
    need_knobs(runs, series)
    groups: dict[str, list[RunFolder]] = {}
    for run in runs:
        groups.setdefault(str(run.knobs[series]), []).append(run)
    styles = palette.line_styles(list(groups))
    devices = {name: np.array([run.device_count for run in group], dtype=np.float64) for name, group in groups.items()}
    seconds = {
        clock: {name: np.array([of(run) for run in group]) for name, group in groups.items()}
        for clock, of in CLOCKS.items()
    }
    texts = []
    for name in groups:
        exponents = []
        for clock in CLOCKS:
            power = growth(devices[name], seconds[clock][name])
            half = "" if np.isnan(power.low) else f" ± {power.high - power.exponent:.2f}"
            exponents.append(f"{clock} {power.exponent:.2f}{half}")
        level = " (95 % interval)" if "±" in exponents[0] else ""
        texts.append(f"{name}: exponent {', '.join(exponents)}{level}")
    with style.figure(style.PAGE_IN, 2.3, texts) as figure:
        grid = style.panel_grid(figure, [_TITLES[clock] for clock in CLOCKS])
        for axes, clock in zip(grid, CLOCKS, strict=True):
            axes.set(xscale="log", yscale="log", xlabel="number of devices")
            for name, look in styles.items():
                x, y = devices[name], seconds[clock][name]
                axes.plot(x, y, linestyle="none", marker=look.marker, color=look.color, alpha=0.6, markersize=3)
                slope, offset = np.polyfit(np.log(x), np.log(y), 1)
                ends = np.array([x.min(), x.max()])
                axes.plot(ends, np.exp(offset) * ends**slope, **look.line())
            axes.xaxis.set_major_locator(FixedLocator(np.unique(np.concatenate([*devices.values()])).tolist()))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_locator(NullLocator())
        grid[0].set_ylabel("time of a round (s)")
        style.legend_below(figure, [Line2D([], [], **look.marked(1)) for look in styles.values()], texts)
    return figure
