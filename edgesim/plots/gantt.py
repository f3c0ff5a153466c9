"""Gantt chart of one round: the activities of every device and their outcomes."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from edgesim.activities import ACTIVITIES
from edgesim.analysis.metrics import scheduled_devices
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.streams import received_share
from edgesim.base.errors import EdgesimError
from edgesim.plots import palette, style

MOST_DEVICES = 60
_HEIGHT = 0.72
"""Height of a bar in rows."""
_SHARE_PT = 7
"""Size of the number that says how much of an upload was received, in points."""
_UNSCHEDULED = palette.KIND_COLORS["unscheduled"]

_HATCHES = {
    "late": "////",
    "dropped": "xxxx",
    "cancelled": "....",
    "skipped": "\\\\\\\\",
    "kept": "++++",
    "unscheduled": "",
}


def draw_gantt(run: RunFolder, round: int | None = None) -> Figure:
    """Bars of what each device did in the course of a round, over seconds since the round's start, and its deadline.

    Work that is carried into the round or out of it is cut at the edges of the chart. Without a ``round`` the first one
    that scheduled a device is drawn. Colour shows the activity, hatching an outcome other than done; grey bars are work
    that was not scheduled. An upload that the deadline ended is as high as the share of it that was received, which is
    written behind its row. At most `MOST_DEVICES` devices are drawn, scheduled ones first. Raises `EdgesimError` for a
    round that is not in the run.
    """
    rounds, activities = run.rounds, run.activities
    number = round_drawn(run, rounds, round)
    facts = rounds[rounds["round"] == number].iloc[0]
    # A row has the round in which its task was settled: a latecomer's lies in a later one than its work.
    meanwhile = (activities["t_end_s"] > facts["t_start_s"]) & (activities["t_start_s"] < facts["t_end_s"])
    rows = activities[meanwhile | (activities["round"] == number)]
    shown = _devices(rounds, rows)
    rows = rows[rows["device"].isin(shown)]
    place = {device: i for i, device in enumerate(shown)}
    share = received_share(run, rows)
    cut = rows.assign(share=share)[share < 1]
    # Shares of a bar's height need higher bars.
    row_in = min(0.16, 6 / len(shown)) if len(cut) else 0.1
    with style.figure(style.COLUMN_IN, max(2.1, 1.3 + row_in * len(shown))) as figure:
        axes = figure.subplots()
        for (activity, ending), bars in rows.groupby(["activity", "outcome"], sort=True):
            outcome = str(ending)
            heights = _HEIGHT * share[bars.index]
            axes.barh(
                bars["device"].map(place) + (_HEIGHT - heights) / 2,
                bars["t_end_s"] - bars["t_start_s"],
                left=bars["t_start_s"] - facts["t_start_s"],
                height=heights,
                color=_UNSCHEDULED if outcome == "unscheduled" else ACTIVITIES[str(activity)].color,
                hatch=_HATCHES.get(outcome, ""),
                edgecolor="white" if _HATCHES.get(outcome) else "none",
                linewidth=0,
            )
        axes.axvline(run.tmax_s, color=palette.PALETTE["vermilion"], linestyle="--", linewidth=1)
        end_s = float(facts["t_end_s"] - facts["t_start_s"])
        axes.axvline(end_s, color="black", linestyle=":", linewidth=1)
        axes.set(xlim=(0, 1.04 * max(run.tmax_s, end_s)), ylim=(max(len(shown), 1) - 0.4, -0.6))
        axes.set(xlabel="time since the round began (s)", ylabel="device")
        step = max(1, -(-len(shown) // 15))
        axes.set_yticks(np.arange(0, len(shown), step), [str(device) for device in shown[::step]])
        total = int(facts["candidates"])
        part = f", {len(shown)} of {total} devices shown" if total > MOST_DEVICES else ""
        scheduled = f"{int(facts['selected'])} scheduled, {int(facts['arrived'])} arrived"
        axes.set_title(style.folded(f"round {number}: {scheduled}{part}", 0.85 * style.COLUMN_IN))
        _draw_parts(axes, cut, place, facts["t_start_s"])
        handles = _handles(rows)
        if len(cut):
            handles.insert(-2, Patch(facecolor="none", edgecolor="#777777", linewidth=0.6, label="received in part"))
        style.legend_below(figure, handles, [str(handle.get_label()) for handle in handles])
    return figure


def _draw_parts(axes: Axes, cut: pd.DataFrame, place: dict[int, int], start_s: float) -> None:
    """Outline uploads received in part, as high as all of each would be; the ``share`` stands right of the axes."""
    left, width = cut["t_start_s"] - start_s, cut["t_end_s"] - cut["t_start_s"]
    axes.barh(cut["device"].map(place), width, left=left, height=_HEIGHT, facecolor="none", edgecolor="#777777", lw=0.6)
    for row, share in zip(cut["device"].map(place), cut["share"], strict=True):
        text = f"{100 * share:.2g} %"
        axes.text(1.01, row, text, transform=axes.get_yaxis_transform(), va="center", fontsize=_SHARE_PT)


def round_drawn(run: RunFolder, rounds: pd.DataFrame, wanted: int | None) -> int:
    """The wanted round, or the first one that scheduled a device; raises `EdgesimError` for an unknown round."""
    if wanted is None:
        busy = rounds[rounds["selected"] > 0]
        return int((busy if len(busy) else rounds)["round"].iloc[0])
    if not (rounds["round"] == wanted).any():
        first, last = int(rounds["round"].min()), int(rounds["round"].max())
        raise EdgesimError(f"{run.folder}: there is no round {wanted}; choose one from {first} to {last}")
    return wanted


def _devices(rounds: pd.DataFrame, rows: pd.DataFrame) -> list[int]:
    devices = sorted(rows["device"].unique())
    if len(devices) > MOST_DEVICES:
        chosen = set(scheduled_devices(rounds, rows)["device"])
        devices = sorted(sorted(devices, key=lambda device: (device not in chosen, device))[:MOST_DEVICES])
    return [int(device) for device in devices]


def _handles(rows: pd.DataFrame) -> list[Patch | Line2D]:
    """Legend entries for what is in the chart and nothing else."""
    activities, outcomes = set(rows["activity"]), set(rows["outcome"])
    handles: list[Patch | Line2D] = [
        Patch(color=of.color, linewidth=0, label=name) for name, of in ACTIVITIES.items() if name in activities
    ]
    for outcome, hatch in _HATCHES.items():
        if outcome == "unscheduled" and outcome in outcomes:
            handles.append(Patch(color=_UNSCHEDULED, linewidth=0, label=outcome))
        elif outcome in outcomes:
            handles.append(Patch(facecolor="#777777", edgecolor="white", hatch=hatch, linewidth=0, label=outcome))
    handles.append(Line2D([], [], color=palette.PALETTE["vermilion"], linestyle="--", linewidth=1, label="deadline"))
    handles.append(Line2D([], [], color="black", linestyle=":", linewidth=1, label="round's end"))
    return handles
