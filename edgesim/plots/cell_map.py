"""Map of stations and devices, with the number of times that each device was scheduled."""

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.analysis.metrics import scheduled_share
from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats
from edgesim.base.plain_text import figure_text
from edgesim.folder.rows_file import WAYS
from edgesim.plots import palette, style

_MARKS = ("o", "s", "D", "v", "P", "X", "^")
"""Marker shapes of the devices, one per station; further stations use the same shapes again."""


_MOST_WAYS, _MOST_CORNERS = 60, 200
_HANDOVERS_LABEL = "handover"
_CROSS = palette.PALETTE["purple"]


def draw_cell_map(run: RunFolder) -> Figure:
    """Map of one run: stations as triangles with their names, devices coloured by their share of rounds scheduled.

    A device was scheduled in a round in which it has an upload. Devices that move are where they begin, lines are their
    ways, and crosses where they were handed over.
    """
    ways = _ways(run)
    crosses = None if ways is None else _handovers(run, ways)
    devices = run.devices
    devices = devices[devices["frame"] == devices["frame"].max()]
    stations = run.stations
    stations["name"] = stations["name"].map(figure_text)
    activities = run.activities
    of_rounds = activities[activities["round"].isin(run.rounds["round"])]
    shares = scheduled_share(of_rounds, devices["device"].to_numpy(), len(run.rounds))
    several = len(stations) > 1
    with_devices = stations[: len(_MARKS)] if several else stations[:0]
    labels = ["station", *(f"devices of {name}" for name in with_devices["name"])]
    if ways is not None:
        labels = ["station", *(f"devices first at {name}" for name in with_devices["name"])]
        labels += [] if several else ["device, where it begins"]
        labels += ["way of a device" if len(ways) == len(devices) else f"ways of devices 0 to {len(ways) - 1}"]
    labels += [] if crosses is None else [_HANDOVERS_LABEL]
    with style.figure(style.COLUMN_IN, 3.0, labels) as figure:
        axes = figure.subplots()
        if ways is not None:
            lines = [rows[["x_m", "y_m"]].to_numpy() for rows in ways.values()]
            axes.add_collection(LineCollection(lines, colors="#999999", linewidths=0.5, alpha=0.6, zorder=0))
        if crosses is not None:
            axes.scatter(crosses[:, 0], crosses[:, 1], marker="x", s=9, c=_CROSS, linewidths=0.7, zorder=2)
        for station, name in zip(stations["station"], stations["name"], strict=True):
            there = (devices["station"] == station).to_numpy()
            dots = axes.scatter(
                devices["x_m"][there],
                devices["y_m"][there],
                c=shares[there],
                cmap="viridis",
                vmin=0,
                vmax=max(float(shares.max()), 1e-9),
                # In square points: smaller in a crowd.
                s=float(np.clip(2500 / len(devices), 2, 28)),
                marker=_MARKS[station % len(_MARKS)],
                linewidths=0,
                rasterized=len(devices) > 2000,
            )
            if several:
                axes.annotate(
                    name,
                    stations.loc[stations["station"] == station, ["x_m", "y_m"]].to_numpy()[0],
                    xytext=(0, -9),
                    textcoords="offset points",
                    ha="center",
                    fontsize=6,
                    bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.7},
                )
        axes.scatter(
            stations["x_m"], stations["y_m"], marker="^", s=55, c=palette.PALETTE["vermilion"],
            edgecolors="white", linewidths=0.7, zorder=3,
        )  # fmt: skip
        axes.set(aspect="equal", xlabel="east of the centre (m)", ylabel="north of the centre (m)")
        figure.colorbar(dots, ax=axes, label="share of rounds scheduled", shrink=0.85)
        marks = [_mark("^", palette.PALETTE["vermilion"])]
        marks += [_mark(_MARKS[station % len(_MARKS)], "#666666") for station in with_devices["station"]]
        if ways is not None:
            marks += [] if several else [_mark(_MARKS[0], "#666666")]
            marks += [Line2D([], [], color="#999999", linewidth=0.8)]
        marks += [] if crosses is None else [_mark("x", _CROSS)]
        style.legend_below(figure, marks, labels)
    return figure


def _ways(run: RunFolder) -> dict[int, pd.DataFrame] | None:
    """Corners of the ways of the first devices of a run, as far as a map can be read; None if none moves."""
    ways = WAYS.read(run.folder)
    if ways is None:
        return None
    some = ways[ways["device"] < _MOST_WAYS].groupby("device").head(_MOST_CORNERS)
    return {int(device): rows for device, rows in some.groupby("device")}  # type: ignore[call-overload]


def _handovers(run: RunFolder, ways: dict[int, pd.DataFrame]) -> Floats | None:
    """Places at which devices were handed over on the ways that are drawn, [k, 2]; None if nobody was."""
    handovers, places = run.handovers, []
    for device, rows in handovers[handovers["device"].isin(ways)].groupby("device"):
        way, t_s = ways[int(device)], rows["t_s"].to_numpy()  # type: ignore[call-overload]
        t_s = t_s[t_s <= way["t_s"].max()]
        places.append(np.column_stack([np.interp(t_s, way["t_s"], way[axis]) for axis in ("x_m", "y_m")]))
    return np.concatenate(places) if places else None


def _mark(marker: str, color: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, color=color, markersize=5)
