"""A forest plot of paired differences between the values of a knob and a reference value."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from edgesim.analysis.differences import summarise_differences
from edgesim.analysis.pairing import Comparison, Pairing
from edgesim.analysis.runs import Knob
from edgesim.plots import palette, style
from edgesim.plots.groups import knob_text, labels_of, panels_of, quantity
from edgesim.plots.intervals import LEAST_SEEDS, note_of_seeds

_NAMES_IN = 1.65
_HALF_SPREAD = 0.3
"""Distance from the middle of a row to the outermost of several deadlines, in rows."""
_ROW = 0.7
"""Height of a row's grey, shared by the deadlines of the row."""
_THICK, _THIN = 2.0, 0.6
_INTERVALS: dict[str, dict[str, Any]] = {
    "95 % interval": {"linewidth": _THICK},
    "corrected (Holm)": {"linewidth": _THIN},
}
_FILLED: dict[str, Any] = {"linestyle": "none", "marker": "o"}
_OPEN = _FILLED | {"markerfacecolor": "white"}
_RATIO = "a run never got there: ratio instead of the difference"
_SIGNIFICANT_RATIO = "* a significant ratio"
_RATIO_BACKGROUND = "#EEEEEE"
_UNITS = {"rounds_to_target": "rounds"}
"""Units beyond those of `edgesim.plots.groups.quantity`: the title says of what the axis has a difference or ratio."""


def draw_differences(comparisons: Sequence[Comparison], knob: str, reference: Knob) -> Figure:
    """A panel per measure, a row per combination of knobs, a colour per deadline: the mean difference over seeds.

    Zero is the ``reference``, a value of ``knob``. The thick bar is the 95 % t interval, the thin one that at the level
    at which the comparison was judged (`edgesim.analysis.judgement.judge`): if it does not cross zero, the difference
    is significant, and its mark is filled. Fewer than three pairs have no interval, and one pair no test. Where a run
    of some pair never reached the target there is no mean difference but a ratio, of times or joules up to those to
    which all runs were tested: a text on grey that stands for no place on the axis, with a star where it is
    significant. A panel that has such rows alone has an axis of ratios instead, in which 1 is the reference. A measure
    in which no pair differs has no panel, unless that is so of all.
    """
    table = summarise_differences(comparisons).to_dict("records")
    rows_of = {each.runs[0].folder: each.runs for each in comparisons}
    panels = panels_of([run for runs in rows_of.values() for run in runs])
    place = {run.folder: (panel.title, of.label) for panel in panels for of in panel.series for run in of.runs}
    rows = labels_of(panels)
    present = list(dict.fromkeys(each.measure for each in comparisons))
    differing = {each.measure for each, row in zip(comparisons, table, strict=True) if row["differing"]}
    measures = [name for name in present if name in differing] or present
    titles = [panel.title for panel in panels]
    styles = palette.line_styles(titles)
    several = len(panels) > 1
    names = [style.folded(row, _NAMES_IN) for row in rows]
    row_in = max(0.09 + 0.115 * max(name.count("\n") + 1 for name in names), 0.09 * len(panels) + 0.05)
    # As high as the title of the comparison is long in a few lines.
    rows_in = max(row_in * len(rows), 0.9)
    width, height = style.panel_size(len(measures), 0.85 + rows_in)
    looks = _looks(table)
    taus = {name: {row["tau"] for row in table if row["measure"] == name} for name in measures}
    has_ratios_alone = {name for name in measures if not np.isnan(list(taus[name])).any()}
    texts = [
        row for row in table if row["measure"] in measures and row["never"] and row["measure"] not in has_ratios_alone
    ]
    notes = [*[_RATIO] * bool(texts), *[_SIGNIFICANT_RATIO] * any(_is_significant(row) for row in texts)]
    legend = [*(titles if several else ()), *looks, *notes]
    with style.figure(width, height, legend) as figure:
        grid = dict(zip(measures, style.panel_grid(figure, [quantity(name).name for name in measures]), strict=True))
        shifts = dict(
            zip(titles, np.linspace(-_HALF_SPREAD, _HALF_SPREAD, len(panels)) if several else [0.0], strict=True)
        )
        for measure, axes in grid.items():
            are_ratios = measure in has_ratios_alone
            axes.axvline(1 if are_ratios else 0, color="black", linewidth=0.7)
            for comparison, row in zip(comparisons, table, strict=True):
                if comparison.measure == measure:
                    title, label = place[comparison.runs[0].folder]
                    at = rows.index(label) + shifts[title]
                    if row["never"] and not are_ratios:
                        _write_row(axes, at, row, styles[title].color, height=_ROW / len(panels))
                    else:
                        _draw_row(axes, at, row, styles[title], "ratio" if are_ratios else "difference")
            axes.margins(x=0.12)
            axes.grid(visible=False, axis="y")
            axes.grid(axis="x")
            axes.xaxis.set_major_locator(MaxNLocator(4))
            unit = _UNITS.get(measure, quantity(measure).unit)
            if are_ratios:
                _scale_ratios(axes)
                ends = " to ".join(dict.fromkeys(f"{tau:,.6g}" for tau in (min(taus[measure]), max(taus[measure]))))
                axes.set_xlabel(f"ratio up to {ends} {unit}")
            else:
                axes.set_xlabel(f"difference ({unit})" if unit else "difference")
        if {"scheduled", "arrived"} <= grid.keys():
            # Both are devices per round: one scale shows how many are lost between scheduling and arrival.
            _share_scale(grid["scheduled"], grid["arrived"])
        every = list(grid.values())
        every[0].set_yticks(range(len(rows)), names)
        every[0].set_ylim(len(rows) - 0.5, -0.5)
        # A line that is longer than its panel is high would leave the figure at its top.
        compared = against([each.pairing for each in comparisons], knob, reference)
        compared += note_of_seeds({row["pairs"] for row in table if row["pairs"]} or {0})
        compared = "\n".join(style.folded(line, rows_in + 0.3) for line in compared.splitlines())
        for axes in every[:: style.abreast(len(every))]:
            axes.set_ylabel(compared)
        marks = [Line2D([], [], color=styles[name].color, marker=styles[name].marker) for name in titles if several]
        shown = [Line2D([], [], color=palette.PALETTE["slate"], **look) for look in looks.values()]
        grey = Patch(facecolor=_RATIO_BACKGROUND, linewidth=0)
        # As many as the legend has texts: the last two are there only where some row has a ratio as a text.
        handles = [*marks, *shown, grey, Line2D([], [], linestyle="none")][: len(legend)]
        style.legend_below(figure, handles, legend)
    return figure


def against(pairings: Sequence[Pairing], knob: str, reference: Knob) -> str:
    """Title of a comparison: ``against REFERENCE``, and before it the other value where there is only one."""
    others = {knob_text(name, value) for pairing in pairings for name, value in pairing.choice.items()}
    other = f"{others.pop()} " if len(others) == 1 else ""
    return f"{other}against {knob_text(knob, reference)}"


def _looks(table: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Entries of the legend for the bars and marks that these rows can have."""
    intervals = _INTERVALS if any(row["pairs"] >= LEAST_SEEDS for row in table) else {}
    if any(row["pairs"] > 1 for row in table):
        return intervals | {"significant": _FILLED, "not significant": _OPEN}
    return {"one seed: not tested": _OPEN}


def _is_significant(row: Mapping[Any, Any]) -> bool:
    return bool(row["p_holm"] < 0.05)


def _write_row(axes: Axes, place: float, row: Mapping[Any, Any], color: str, height: float) -> None:
    """Write the ratio of a row, in a panel of differences."""
    has_interval = row["pairs"] >= LEAST_SEEDS and not np.isnan(row["ratio_low"])
    ends = f" [{row['ratio_low']:.3g}, {row['ratio_high']:.3g}]" if has_interval else ""
    text = f"x{row['ratio']:.3g}{ends} up to {row['tau']:,.6g}{' *' * _is_significant(row)}"
    # Over the line of zero and the grid, below the text.
    axes.axhspan(place - height / 2, place + height / 2, color=_RATIO_BACKGROUND, linewidth=0, zorder=2.5)
    axes.text(0.98, place, text, transform=axes.get_yaxis_transform(), fontsize=6, ha="right", va="center", color=color)


def _draw_row(axes: Axes, place: float, row: Mapping[Any, Any], look: palette.LineStyle, of: str) -> None:
    """Draw the ``difference`` or the ``ratio`` of a row with its intervals."""
    if row["pairs"] >= LEAST_SEEDS:
        prefix = "ratio_" if of == "ratio" else ""
        for suffix, linewidth in (("_holm", _THIN), ("", _THICK)):
            ends = [row[f"{prefix}{end}{suffix}"] for end in ("low", "high")]
            axes.hlines(place, *ends, color=look.color, linewidth=linewidth)
    axes.plot(row[of], place, linestyle="none", marker=look.marker, color=look.color,
              markerfacecolor=look.color if _is_significant(row) else "white", markersize=4)  # fmt: skip


def _scale_ratios(axes: Axes) -> None:
    """Give axes of ratios a logarithmic scale: a half is as far from 1 as 2."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    # Each has a tick at 1.
    near, far, farthest = MaxNLocator(4, steps=[1, 2, 5, 10]), LogLocator(subs=(1, 2, 5)), LogLocator(numticks=5)
    axes.xaxis.set_major_locator(near if high / low < 4 else far if high / low < 100 else farthest)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())


def _share_scale(first: Axes, second: Axes) -> None:
    ends = np.array([first.get_xlim(), second.get_xlim()])
    for axes in (first, second):
        axes.set_xlim(ends[:, 0].min(), ends[:, 1].max())
