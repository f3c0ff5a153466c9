"""Figures of recordings: availability (FedDance, SoCC 2025, fig. 3, and the hours of the day), capacity, speed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator, PercentFormatter

from edgesim.base.arrays import Floats, Integers
from edgesim.base.plain_text import figure_text
from edgesim.plots import palette, style
from edgesim.traces.session_statistics import Anatomy

ONLINE_SHARE = 0.2026
LONG_GAP_SHARE = 0.65
"""Share of all time that is online, and share of the devices with gaps above an hour, of 136,000 phones (FedDance,
section 2.2)."""

MOST_TABLES = 9
"""Most capacity tables that are drawn."""

_MOST_POINTS = 400
_FEW_SESSIONS = 10
"""Most sessions of a device that are drawn on a linear axis."""
_WIDE: dict[str, Any] = {"linewidth": 2.2, "alpha": 0.45}
_THIN: dict[str, Any] = {"linewidth": 0.5, "alpha": 0.6}
_PUBLISHED: dict[str, Any] = {"linewidth": 0.8, "linestyle": ":", "marker": "v"}
_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 86_400.0
_TIMES = {
    1.0: "1 s", 10.0: "10 s", _MINUTE_S: "1 min", 10 * _MINUTE_S: "10 min", _HOUR_S: "1 h", 10 * _HOUR_S: "10 h",
    4 * _DAY_S: "4 d", 40 * _DAY_S: "40 d",
}  # fmt: skip
_SHORT = {"s": (1.0, 2 * _MINUTE_S), "min": (_MINUTE_S, 2 * _HOUR_S), "h": (_HOUR_S, 2 * _DAY_S), "d": (_DAY_S, np.inf)}
"""Units of an axis of time: seconds of each, and the length of a trace up to which it is taken."""
_TITLES = {
    "sessions": "sessions per device", "durations": "durations", "gaps": "gaps", "hours": "hours of the day",
    "time": "the whole trace",
}  # fmt: skip


def draw_anatomy(traces: Mapping[str, Anatomy], published: bool = False) -> Figure:
    """Sessions per device, durations, gaps, and share online by hour of the day and over time, a line per trace.

    Of recordings that are all shorter than two hours no hours are drawn.

    Gaps are drawn twice: all of them, and the mean of each device. Shares online are shares of the devices still
    recorded; if recordings differ in length, a thin line shows the share of all devices that is still recorded.
    ``published`` marks what FedDance reports.
    """
    labels, texts = list(traces), list(map(figure_text, traces))
    styles = palette.line_styles(labels)
    over_time = {label: _over_time(trace) for label, trace in traces.items()}
    apart = [label for label, (*_, recorded) in over_time.items() if recorded[-1] < 0.99]
    notes = {"(c): mean of each device": _WIDE} | ({"(e): still recorded": _THIN} if apart else {})
    notes |= {"black and grey marks: 136,000 phones (FedDance)": _PUBLISHED} if published else {}
    with style.figure(style.PAGE_IN, 5.2, [*texts, *notes]) as figure:
        length_s = max(trace.length_s for trace in traces.values())
        has_hours = length_s > 2 * _HOUR_S
        layout = [["sessions", "durations"], ["gaps", "hours" if has_hours else "gaps"], ["time", "time"]]
        parts: dict[str, Axes] = figure.subplot_mosaic(layout)
        sessions, durations, gaps, time = (parts[name] for name in ("sessions", "durations", "gaps", "time"))
        unit, unit_s = next((name, each_s) for name, (each_s, up_to_s) in _SHORT.items() if length_s <= up_to_s)
        for label, trace in traces.items():
            line = styles[label].line()
            _cdf(sessions, trace.sessions.astype(np.float64), **line)
            _cdf(durations, trace.duration_s, **line)
            _cdf(gaps, trace.gap_s, **line)
            _cdf(gaps, trace.mean_gap_s, **line | _WIDE)
            edges_s, share, recorded = over_time[label]
            time.step(edges_s / unit_s, np.append(share, share[-1]), where="post", **line | {"linewidth": 0.8})
            if label in apart:
                time.step(edges_s / unit_s, np.append(recorded, recorded[-1]), where="post", **line | _THIN)
        if has_hours:
            _draw_hours(parts["hours"], traces, styles, length_s)
        if published:
            _mark_published(sessions, durations, gaps)
            if has_hours:
                _mark_share_online(parts["hours"])
        most = max(1, max(int(trace.sessions.max()) for trace in traces.values()))
        if most > _FEW_SESSIONS:
            sessions.set_xscale("symlog", linthresh=1)
            sessions.xaxis.set_major_locator(FixedLocator([0, 1, 10, 100, 1000]))
            sessions.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            sessions.xaxis.set_major_locator(MaxNLocator(integer=True))
        sessions.set_xlim(0, (2 if most > _FEW_SESSIONS else 1.1) * most)
        sessions.set(xlabel="sessions of a device", ylabel="share of devices")
        for axes, what in ((durations, "duration of a session"), (gaps, "gap between sessions")):
            axes.set(xscale="log", xlim=(1, 1.1 * min(length_s, 7 * _DAY_S)), xlabel=what, ylabel="share")
            axes.xaxis.set_major_locator(FixedLocator(list(_TIMES)))
            axes.xaxis.set_major_formatter(lambda value, _: _TIMES.get(value, ""))
            axes.minorticks_off()
        time.set(xlim=(0, length_s / unit_s), xlabel=f"time of the trace ({unit})")
        for name in {"hours", "time"} & {*parts}:
            parts[name].set(ylim=(0, None), ylabel="devices online")
            parts[name].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        for i, (name, axes) in enumerate(parts.items()):
            axes.grid()
            axes.set_title(f"({style.letter(i)}) {_TITLES[name]}")
        for axes in (sessions, durations, gaps):
            axes.set_ylim(0, 1.02)
        handles = [Line2D([], [], **styles[label].line()) for label in labels]
        handles += [Line2D([], [], color=palette.PALETTE["black"], **look) for look in notes.values()]
        style.legend_below(figure, handles, [*texts, *notes])
    return figure


def _draw_hours(
    axes: Axes, traces: Mapping[str, Anatomy], styles: Mapping[str, palette.LineStyle], length_s: float
) -> None:
    """Share online by hour of the day; of less than a day the hours that were recorded."""
    for label, trace in traces.items():
        share = np.append(trace.share_by_hour, trace.share_by_hour[-1])
        axes.step(np.arange(25), share, where="post", **styles[label].line())
    axes.set(xlim=(0, min(24, np.ceil(length_s / _HOUR_S))), xlabel="hour of the trace's day (h)")
    axes.xaxis.set_major_locator(FixedLocator(range(0, 25, 4)) if length_s > 12 * _HOUR_S else MaxNLocator(6))


def _over_time(trace: Anatomy) -> tuple[Floats, Floats, Floats]:
    """Edges of parts of a trace, [p + 1] in s, and two mean shares in each part, [p].

    Parts end where somebody comes, leaves or is no longer recorded or, where that is too often, are equally long. The
    first share is that of devices online among those still recorded, the second that of devices still recorded among
    all.
    """
    instants_s, counts = trace.counts_over_time
    edges_s = np.linspace(0.0, trace.length_s, _MOST_POINTS + 1)
    changes_s = np.unique(np.concatenate([[0.0], instants_s, trace.intervals.length_s, [trace.length_s]]))
    if len(changes_s) <= len(edges_s):
        edges_s = changes_s
    online_s = np.append(0.0, np.cumsum(np.diff(instants_s) * counts[:-1]))
    recorded_s = np.diff(trace.recorded_until_s(edges_s))
    share = np.diff(np.interp(edges_s, instants_s, online_s)) / recorded_s
    return edges_s, share, recorded_s / (np.diff(edges_s) * len(trace.sessions))


def _mark_published(sessions: Axes, durations: Axes, gaps: Axes) -> None:
    """Grey marks of what FedDance states: dozens to hundreds of sessions, of minutes, long gaps."""
    for axes, low, high, text in (
        (sessions, 12, 999, "dozens to\nhundreds"),
        (durations, _MINUTE_S, 10 * _MINUTE_S, "a few minutes"),
    ):
        axes.axvspan(low, high, color="#EEEEEE", zorder=0)
        axes.annotate(text, (low, 0.98), xytext=(2, 0), textcoords="offset points", va="top", fontsize=7)
    gaps.plot(_HOUR_S, 1 - LONG_GAP_SHARE, marker="v", color=palette.PALETTE["black"], linestyle="none")
    text = f"over {LONG_GAP_SHARE:.0%}\nof the devices\nabove 1 h"
    arrow = {"arrowstyle": "-", "linewidth": 0.6, "color": palette.PALETTE["grey"]}
    gaps.annotate(text, (_HOUR_S, 1 - LONG_GAP_SHARE), (2, 0.95), fontsize=7, va="top", arrowprops=arrow)


def _mark_share_online(hours: Axes) -> None:
    """The one share online that FedDance states."""
    hours.axhline(ONLINE_SHARE, color=palette.PALETTE["black"], linewidth=0.8, linestyle=":")
    hours.annotate(f"{ONLINE_SHARE:.2%} of all time", (16, ONLINE_SHARE), ha="center", va="bottom", fontsize=7)


def draw_capacity(tables: Mapping[str, tuple[Floats, Floats]]) -> Figure:
    """Capacity over time of each trace, as (times in s, bit/s from there on); at most `MOST_TABLES` of them."""
    names = list(tables)[:MOST_TABLES]
    with style.figure(*style.panel_size(len(names), 1.6)) as figure:
        for axes, name in zip(style.panel_grid(figure, list(map(figure_text, names))), names, strict=True):
            t_s, bps = _by_second(*tables[name])
            axes.step(t_s, bps / 1e6, where="post", color=palette.PALETTE["blue"], linewidth=0.6)
            axes.set(xlabel="time (s)", ylabel="capacity (Mbit/s)")
        # Not before all is drawn: the panels share their scale.
        axes.set_ylim(bottom=0)
    return figure


def draw_profile(s_per_sample: Floats, link_bps: Floats | None) -> Figure:
    """Distributions over devices of the time per sample and, where known, of the link's rate."""
    panels: list[tuple[Floats, str]] = [(1e3 * s_per_sample, "training time per sample (ms)")]
    if link_bps is not None:
        panels.append((link_bps / 1e6, "rate of the link (Mbit/s)"))
    with style.figure(*style.panel_size(len(panels), 2.0)) as figure:
        grid = figure.subplots(1, len(panels), squeeze=False)
        for axes, (values, what) in zip(grid[0], panels, strict=True):
            _cdf(axes, values, color=palette.PALETTE["blue"])
            axes.set(xscale="log", ylim=(0, 1.02), xlabel=what, ylabel="share of devices")
            axes.grid()
    return figure


def draw_positions(device: Integers, x_m: Floats, y_m: Floats) -> Figure:
    """Paths of recorded devices, straight from row to row, [m] by device and time, and where each was first."""
    begins = np.flatnonzero(np.append(True, np.diff(device) > 0))
    ways = np.split(np.column_stack((x_m, y_m)), begins[1:])
    texts = ["path of a device", "its first position"]
    with style.figure(style.COLUMN_IN, style.COLUMN_IN, texts) as figure:
        axes = figure.subplots()
        lines = LineCollection(ways, colors=palette.PALETTE["blue"], linewidths=0.5, alpha=0.6)
        axes.add_collection(lines)
        dots = axes.scatter(x_m[begins], y_m[begins], s=4, color=palette.PALETTE["black"], zorder=3)
        axes.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
        style.legend_below(figure, [lines, dots], texts)
    return figure


def _cdf(axes: Axes, values: Floats, **line: object) -> None:
    """Empirical distribution as a step line of at most `_MOST_POINTS` points; nothing for no values."""
    if not len(values):
        return
    ordered = np.sort(values)
    shown = np.unique(np.linspace(0, len(ordered) - 1, _MOST_POINTS).round().astype(int))
    axes.step(np.append(ordered[0], ordered[shown]), np.append(0.0, (shown + 1) / len(ordered)), where="post", **line)


def _by_second(t_s: Floats, bps: Floats) -> tuple[Floats, Floats]:
    """Means over whole seconds if the rows are finer, since a line of every millisecond would be a black block."""
    if len(t_s) < 2 * _MOST_POINTS or np.median(np.diff(t_s)) >= 1.0:
        return t_s, bps
    bits = np.append(0.0, np.cumsum(np.diff(t_s) * bps[:-1]))
    seconds = np.arange(np.floor(t_s[-1]) + 1)
    return seconds[:-1], np.diff(np.interp(seconds, t_s, bits))
