"""Heat maps: a column of a study's summary over two of its knobs."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from numpy.typing import NDArray

from edgesim.analysis.measures import TO_TARGET
from edgesim.analysis.needed import need_columns
from edgesim.base.arrays import Floats
from edgesim.base.plain_text import figure_text
from edgesim.plots import style
from edgesim.plots.groups import knob_text, quantity
from edgesim.plots.intervals import note_of_seeds

COLUMNS = (
    "seconds_to_target",
    "joules_to_target",
    "scheduled",
    "arrived",
    "miss_rate",
    "infeasible_share",
    "spectral_efficiency_bps_per_hz",
    "wasted_share_j",
)


@dataclass(frozen=True)
class _Axis:
    """The values of a knob along an axis, how each is written, and what the axis is called."""

    values: list[Any]
    texts: list[str]
    label: str

    @classmethod
    def of(cls, summary: pd.DataFrame, name: str, *, reverse: bool = False) -> "_Axis":
        if not pd.api.types.is_numeric_dtype(summary[name]):
            values = list(dict.fromkeys(summary[name]))[:: -1 if reverse else 1]
            return cls(values, [figure_text(value) for value in values], figure_text(name))
        what = quantity(name, float(summary[name].abs().max()))
        numbers = np.unique(summary[name].to_numpy()).tolist()
        return cls(numbers, [f"{value * what.factor:g}" for value in numbers], what.axis)


_NARROWEST_IN = 0.24
_AROUND_IN = 1.3
"""Width in inches that the names of the rows and the colour bar take."""
_NOT_DATA = "#E4E4E4"
_NOT_REACHED = "target not reached by every run (how many did)"


def draw_heat_map(summary: pd.DataFrame, x: str, y: str, column: str, panel_knobs: Sequence[str] = ()) -> Figure:
    """One panel per combination of ``panel_knobs``, cells annotated, one colour bar with unit and seeds for all.

    Numbers of ``x`` and ``y`` ascend, texts stand in the order of the summary, the first one at the top.

    ``summary`` has one row per cell and panel, with the number of its ``seeds``; a cell without a row stays empty. The
    colour scale is logarithmic if the values are all above zero and differ by more than a factor of ten. If some runs
    of a cell never reached the target, its measures to the target have no colour, but a text with the mean's lower
    bound and how many runs reached it.
    """
    need_columns(summary, [x, y, column, "seeds", *panel_knobs])
    what = quantity(column)
    across, up = _Axis.of(summary, x), _Axis.of(summary, y, reverse=True)
    summary = summary.assign(_text=[_text(row, column) for row in summary.to_dict("records")])
    summary = summary.assign(_censored=[_is_censored(row, column) for row in summary.to_dict("records")])
    groups: list[tuple[Any, pd.DataFrame]] = [((), summary)]
    if panel_knobs:
        groups = list(summary.groupby(list(panel_knobs), sort=True))
    # Panels share their axes, so each needs every row and column.
    index, columns = up.values, across.values
    tables = {
        name: [
            group.pivot(index=y, columns=x, values=name).reindex(index=index, columns=columns) for _, group in groups
        ]
        for name in (column, "_text", "_censored")
    }
    data = summary.loc[~summary["_censored"], column].to_numpy(dtype=np.float64)
    titles = [
        ", ".join(knob_text(name, float(value)) for name, value in zip(panel_knobs, key, strict=True))
        for key, _ in groups
    ]
    names = across.texts
    lines = [line for text in [*summary["_text"], *names] for line in text.split("\n")]
    cell_in = max(_NARROWEST_IN, *(style.text_width_in(line) for line in lines)) + 0.06
    width, abreast = _shape(len(groups), cell_in * len(columns))
    panel_in = max(1.8, 0.8 + 0.28 * len(index))
    any_censored = bool(summary["_censored"].any())
    height = panel_in * -(-len(groups) // abreast)
    # The width of a cell decides whether names are horizontal and how small texts are.
    share = min(1.0, (width - _AROUND_IN) / abreast / len(columns) / cell_in)
    with style.figure(width, height, [_NOT_REACHED] if any_censored else ()) as figure:
        grid = style.panel_grid(figure, titles, abreast)
        norm = _norm(data)
        for i, axes in enumerate(grid):
            shown = np.where(tables["_censored"][i].eq(True), np.nan, tables[column][i].to_numpy(dtype=np.float64))
            image = axes.imshow(
                shown, cmap="cividis", norm=norm, origin="lower", aspect="auto", interpolation="none"
            )  # fmt: skip
            _annotate(axes, shown, tables["_text"][i].to_numpy(), norm, max(4.0, 6 * share))
            axes.grid(visible=False)
            axes.set_xticks(np.arange(len(columns)), names, rotation=0 if share == 1 else 90)
            axes.set_yticks(np.arange(len(index)), up.texts)
            axes.set_xlabel(across.label)
        for axes in grid[::abreast]:
            axes.set_ylabel(up.label)
        if len(data):
            label = what.axis + note_of_seeds(summary.loc[summary["seeds"] > 0, "seeds"].tolist())
            bar = figure.colorbar(image, ax=grid, label=label, shrink=0.95, pad=0.02)
            if isinstance(norm, LogNorm):
                bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                bar.ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
                bar.ax.yaxis.set_minor_formatter(NullFormatter())
        if any_censored:
            style.legend_below(figure, [_not_data()], [_NOT_REACHED])
    return figure


def _is_censored(row: Mapping[Hashable, Any], column: str) -> bool:
    """Whether a cell includes runs that never reached the target, so that its mean is only bounded."""
    return column in TO_TARGET and bool(row.get("not_reached", 0) > 0)


def _text(row: Mapping[Hashable, Any], column: str) -> str:
    """Text of a cell, on one line or two; empty if it has no runs."""
    if _is_censored(row, column):
        runs, bound = int(row["seeds"]), f"> {_number(row[f'{column}_bound'])} {quantity(column).unit}".rstrip()
        return f"{bound}\n{runs - int(row['not_reached'])} of {runs}"
    if pd.isna(value := row[column]):
        return ""
    # As many digits in every cell, but for whole numbers: 0.930 beside 0.929.
    return f"{value:#.3g}".rstrip(".") if value % 1 and abs(value) < 999.5 else _number(value)


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _shape(panels: int, panel_in: float) -> tuple[float, int]:
    """Width of a figure in inches, and how many of its panels stand side by side."""
    if panels == 1:
        return (style.COLUMN_IN if panel_in + _AROUND_IN <= style.COLUMN_IN else style.PAGE_IN), 1
    return style.PAGE_IN, max(1, min(style.abreast(panels), int((style.PAGE_IN - _AROUND_IN) / panel_in)))


def _norm(data: Floats) -> Normalize:
    if not len(data) or np.isnan(data).all():
        return Normalize(0, 1)
    low, high = float(np.nanmin(data)), float(np.nanmax(data))
    return LogNorm(low, high) if 0 < 10 * low < high else Normalize(low, high)


def _annotate(axes: Axes, values: Floats, texts: NDArray[np.object_], norm: Normalize, size: float) -> None:
    for (i, j), text in np.ndenumerate(texts):
        if not isinstance(text, str) or not text:
            continue
        color = "white" if norm(values[i, j]) <= 0.55 else "black"
        if np.isnan(values[i, j]):
            color = "black"
            axes.add_patch(_not_data((j - 0.5, i - 0.5)))
        box = {"boxstyle": "square,pad=0.1", "fc": _NOT_DATA, "ec": "none"} if np.isnan(values[i, j]) else None
        axes.text(j, i, text, ha="center", va="center", fontsize=size, color=color, bbox=box, linespacing=1.0)


def _not_data(corner: tuple[float, float] = (0.0, 0.0)) -> Rectangle:
    return Rectangle(corner, 1, 1, facecolor=_NOT_DATA, edgecolor="white", hatch="////", linewidth=0)
