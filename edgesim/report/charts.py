"""The page's charts by Bokeh: accuracy against its costs, the cell, the rounds, and what came of the work.

Charts of one run begin empty: the page's scripts fill them with the run that is chosen there, and link them by the
names that are given here (``over``, ``series`` and ``chosen`` in ``charts.js``).
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from bokeh.embed import json_item
from bokeh.models import (
    BasicTicker,
    ColorBar,
    ColumnDataSource,
    FactorRange,
    HoverTool,
    LinearColorMapper,
    NumeralTickFormatter,
    Span,
    TapTool,
    WheelZoomTool,
)
from bokeh.palettes import Viridis256
from bokeh.plotting import figure

from edgesim.analysis.accuracy_series import Over, accuracy_series
from edgesim.analysis.metrics import evaluations, start_accuracy
from edgesim.analysis.spending import Cost, accuracy_over, spending
from edgesim.analysis.waste import shares
from edgesim.base.arrays import Floats
from edgesim.folder.work_kinds import KINDS
from edgesim.plots.groups import Series, bits_unit
from edgesim.plots.intervals import drawn_interval
from edgesim.plots.palette import KIND_COLORS, PALETTE, line_styles

Item = dict[str, Any]

POINTS = 200
COSTS = {
    "rounds": "round",
    "seconds": "simulated time (s)",
    "bits": "bits sent up",
    "joules": "energy of all devices (J)",
}
COUNT_COLORS = {
    "candidates": PALETTE["grey"],
    "selected": PALETTE["sky"],
    "arrived": PALETTE["green"],
    "late": KIND_COLORS["late"],
    "dropped": KIND_COLORS["dropped"],
}


def colors_of(series: Sequence[Series]) -> dict[str, str]:
    """The colour of each line, by its label: that of its policy in all of edgesim's figures."""
    return {label: style.color for label, style in line_styles([line.label for line in series]).items()}


def accuracy_charts(series: Sequence[Series], target: float | None) -> dict[str, Item]:
    """Charts of mean accuracy and its 95 % t interval against each of `COSTS`; none without tests.

    A line is drawn as far as all runs of its series got; bits are in the unit of `unit_of_bits`.
    """
    unit, bits = unit_of_bits(series)
    tested = [line for line in series if all(len(evaluations(run.rounds)) for run in line.runs)]
    charts = {}
    for over, label in COSTS.items():
        label, size = (f"{label} ({unit})", bits) if over == "bits" else (label, 1.0)
        drawn = _accuracy(over, label, size, tested, colors_of(series), target) if tested else None
        if drawn is not None:
            charts[f"accuracy-{over}"] = _item(drawn, f"accuracy-{over}")
    return charts


def unit_of_bits(series: Sequence[Series]) -> tuple[str, float]:
    """The unit in which the page has the bits that were sent up, and its size in bits."""
    return bits_unit(max(float(run.rounds["bits_up"].sum()) for line in series for run in line.runs))


def _accuracy(
    over: str, label: str, size: float, series: Sequence[Series], colors: dict[str, str], target: float | None
) -> figure | None:
    plot = _chart(f"accuracy-{over}", label, "test accuracy", 300)
    for one in series:
        found = _course(one, over)
        if found is None:
            continue
        places, values = found[0] / size, found[1]
        bands = [drawn_interval(column).within(0, 1) for column in values.T]
        source = ColumnDataSource(
            {
                "x": places,
                "mean": np.array([band.mean for band in bands]),
                "low": np.array([band.low for band in bands]),
                "high": np.array([band.high for band in bands]),
                "of": [one.label] * len(bands),
            }
        )
        name = f"series:{one.label}"
        plot.varea("x", "low", "high", source=source, color=colors[one.label], alpha=0.18, name=name)
        line = plot.line("x", "mean", source=source, color=colors[one.label], line_width=2, name=name)
        if over in ("rounds", "seconds"):
            plot.scatter("x", "mean", source=source, color=colors[one.label], size=4, name=name)
        hover = [("", "@of"), (label, "@x{0,0.[000]}"), ("accuracy", "@mean{0.0000}")]
        plot.add_tools(HoverTool(renderers=[line], tooltips=hover))
    if not plot.renderers:
        return None
    if target is not None:
        plot.add_layout(Span(location=target, dimension="width", line_dash="dashed", line_width=1, name="target"))
    return plot


def _course(line: Series, over: str) -> tuple[Floats, Floats] | None:
    """Amounts of a cost [p] and accuracies [runs, p]; None where the runs' costs are not known."""
    if over == "rounds" or over == "seconds":
        unit: Over = "rounds" if over == "rounds" else "seconds"
        return accuracy_series(line.runs, unit)
    cost: Cost = "bits" if over == "bits" else "joules"
    if any(start_accuracy(run.metrics) is None for run in line.runs):
        return None
    return accuracy_over([spending(run) for run in line.runs], cost, POINTS)


def waste_chart(series: Sequence[Series]) -> Item:
    """Mean share of the joules by what came of the work, a bar per series."""
    labels = [line.label for line in series]
    of = [[shares(run.work_by_kind, "joules") for run in line.runs] for line in series]
    table = [[float(np.mean([of_run[kind] for of_run in runs])) for runs in of] for kind in KINDS]
    source = ColumnDataSource({"label": labels, **dict(zip(KINDS, table, strict=True))})
    plot = _chart("waste", "share of energy", "", 60 + 34 * len(labels), y_range=FactorRange(*labels[::-1]))
    across = {"y": "label", "height": 0.7}
    _add_kinds(plot, plot.hbar_stack, source, across, ("", "@label"), "{0.0%}")
    plot.x_range.start, plot.x_range.end = 0, 1
    return _item(plot, "waste")


@cache
def run_charts() -> dict[str, Item]:
    """The charts of the chosen run, still empty: its cell, its rounds and its work; the same for every page."""
    makers: dict[str, Callable[[], figure]] = {"cell": _cell, "counts": _counts, "work": _work}
    return {name: _item(make(), name) for name, make in makers.items()}


def _cell() -> figure:
    plot = _chart("cell", "east of the centre (m)", "north of the centre (m)", 460, match_aspect=True)
    source = _unfilled(("x", "y", "use", "what", "line", "size"), "devices")
    colors = LinearColorMapper(palette=Viridis256, low=0, high=1, name="use")
    dots = plot.scatter(
        "x", "y", source=source, size="size", fill_color={"field": "use", "transform": colors}, line_color="#808080",
        line_width="line", nonselection_alpha=1.0, name="devices",
    )  # fmt: skip
    plot.add_tools(HoverTool(renderers=[dots], tooltips=[("", "@what"), ("share of rounds", "@use{0.000}")]))
    plot.add_tools(TapTool(renderers=[dots]))
    way = _unfilled(("x", "y"), "way")
    plot.line("x", "y", source=way, line_width=1.5, line_color="#808080", level="underlay", name="way")
    handovers = _unfilled(("x", "y", "what"), "handovers")
    crosses = plot.scatter(
        "x", "y", source=handovers, marker="x", size=7, color=PALETTE["purple"], line_width=1.5, name="handovers"
    )
    plot.add_tools(HoverTool(renderers=[crosses], tooltips=[("", "@what")]))
    stations = _unfilled(("x", "y", "name"), "stations")
    marks = plot.scatter(
        "x", "y", source=stations, marker="triangle", size=14, color=PALETTE["vermilion"], line_color="white"
    )
    plot.add_tools(HoverTool(renderers=[marks], tooltips=[("station", "@name")]))
    plot.text("x", "y", "name", source=stations, y_offset=22, text_align="center", text_font_size="11px", name="names")
    plot.add_layout(ColorBar(color_mapper=colors, title="share of rounds", width=12, name="bar"), "right")
    return plot


def _counts() -> figure:
    plot = _chart("counts", COSTS["rounds"], "number of devices", 260)
    source = _unfilled(("round", *COUNT_COLORS), "counts")
    for name, color in COUNT_COLORS.items():
        line = plot.line("round", name, source=source, color=color, line_width=1.5, name=f"count:{name}")
        plot.add_tools(HoverTool(renderers=[line], tooltips=[("round", "@round"), (name, f"@{name}")], mode="vline"))
    return plot


def _work() -> figure:
    plot = _chart("work", COSTS["rounds"], "device time (s)", 260)
    source = _unfilled(("middle", "width", "rounds", *KINDS), "work")
    across = {"x": "middle", "width": "width"}
    _add_kinds(plot, plot.vbar_stack, source, across, ("round", "@rounds"), "{0,0.[000]}")
    plot.y_range.start = 0
    return plot


def _add_kinds(
    plot: figure, stack: Callable[..., Any], source: ColumnDataSource, across: Item, of: tuple[str, str], form: str
) -> None:
    """Stack the kinds of work in bars; what a pointer shows of one begins with ``of`` and has its amount in a form."""
    colors = [KIND_COLORS[kind] for kind in KINDS]
    bars = stack(list(KINDS), source=source, line_color=None, fill_color=colors, **across)
    for kind, drawn in zip(KINDS, bars, strict=True):
        plot.add_tools(HoverTool(renderers=[drawn], tooltips=[of, (kind, f"@{kind}{form}")]))


def _item(plot: figure, element: str) -> Item:
    item: Item = json_item(plot, element)
    return item


def _unfilled(columns: Sequence[str], name: str) -> ColumnDataSource:
    """A source that the page fills; it has one row, since Bokeh warns of axes without any extent."""
    texts = ("name", "what", "rounds")
    return ColumnDataSource({column: ["" if column in texts else 0.0] for column in columns}, name=name)


def _chart(name: str, x: str, y: str, height: int, **more: Any) -> figure:
    plot = figure(
        name=name, height=height, sizing_mode="stretch_width", x_axis_label=x, y_axis_label=y,
        tools="pan,box_zoom,reset,save", toolbar_location="above", background_fill_color=None,
        border_fill_color=None, outline_line_color=None, min_border_right=34, output_backend="canvas", **more,
    )  # fmt: skip
    plot.add_tools(WheelZoomTool(modifiers={"ctrl": True}))
    plot.toolbar.logo = None
    if not isinstance(plot.x_range, FactorRange):
        plot.xaxis.formatter = NumeralTickFormatter(format="0,0.[000]")
    if x == COSTS["rounds"]:
        plot.xaxis.ticker = BasicTicker(mantissas=[1, 2, 5], min_interval=1)
    plot.add_layout(
        Span(location=np.nan, dimension="height", line_width=1.5, line_dash="dotted", visible=False, name="chosen")
    )
    return plot
