"""Heat maps: a column of a study's summary over two of its knobs."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from edgesim.plots import style
from edgesim.plots.groups import Quantity, knob_text, quantity

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


TO_TARGET = {"seconds_to_target": "simulated_s", "joules_to_target": "energy_j"}
"""Columns that only runs which reached the target have, and how much of the same every run had."""


def draw_heat_map(summary: pd.DataFrame, x: str, y: str, column: str, panel_knobs: Sequence[str] = ()) -> Figure:
    """One panel per combination of ``panel_knobs``, cells annotated, one colour bar with the unit for all.

    ``summary`` has one row per cell and panel; a cell without a row stays empty. Colours go by the logarithm where the
    values, all above zero, differ by more than a factor of ten.
    """
    what = quantity(column)
    across, up = (quantity(name, float(summary[name].abs().max())) for name in (x, y))
    groups: list[tuple[Any, pd.DataFrame]] = [((), summary)]
    if panel_knobs:
        groups = list(summary.groupby(list(panel_knobs), sort=True))
    tables = [group.pivot(index=y, columns=x, values=column) for _, group in groups]
    # Panels share their axes, so each needs every row and column.
    index, columns = (
        np.unique(np.concatenate([getattr(table, way) for table in tables])) for way in ("index", "columns")
    )
    tables = [table.reindex(index=index, columns=columns) for table in tables]
    values = np.concatenate([table.to_numpy(dtype=np.float64).ravel() for table in tables])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    norm = LogNorm(low, high) if 0 < 10 * low < high else Normalize(low, high)
    titles = [
        ", ".join(knob_text(name, float(value)) for name, value in zip(panel_knobs, key, strict=True))
        for key, _ in groups
    ]
    cells = max(len(table) for table in tables)
    width, height = style.panel_size(len(groups), max(1.8, 0.7 + 0.26 * cells))
    with style.figure(width, height) as figure:
        grid = style.panel_grid(figure, titles)
        for axes, table in zip(grid, tables, strict=True):
            shown = table.to_numpy(dtype=np.float64)
            image = axes.imshow(
                shown,
                cmap="cividis",
                norm=norm,
                origin="lower",
                aspect="auto",
                interpolation="none",
            )
            _annotate(axes, shown, norm)
            axes.grid(visible=False)
            axes.set_xticks(np.arange(shown.shape[1]), _texts(table.columns, across))
            axes.set_yticks(np.arange(shown.shape[0]), _texts(table.index, up))
            axes.set_xlabel(across.axis)
        for axes in grid[:: style.abreast(len(grid))]:
            axes.set_ylabel(up.axis)
        figure.colorbar(image, ax=grid, label=f"{what.name}\n({what.unit})", shrink=0.95, pad=0.02)
    return figure


def _annotate(axes: Axes, values: NDArray[np.float64], norm: Normalize) -> None:
    for (i, j), value in np.ndenumerate(values):
        if not np.isnan(value):
            color = "black" if norm(value) > 0.55 else "white"
            text = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
            axes.text(j, i, text, ha="center", va="center", fontsize=6, color=color)


def _texts(values: Iterable[Any], what: Quantity) -> list[str]:
    return [f"{value * what.factor:g}" for value in values]
