"""Several measures of each method at once, every axis from 0 to 1, the best method's value."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.analysis.needed import need_columns
from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError
from edgesim.base.plain_text import figure_text
from edgesim.plots import palette, style

AXES = {
    "final_accuracy": ("accuracy", True),
    "final_macro_f1": ("macro F1", True),
    "final_roc_auc": ("ROC-AUC", True),
    "rounds_to_target": ("rounds to\nthe target", False),
    "loss_roughness": ("smooth\nloss", False),
    "simulated_s": ("short\nrounds", False),
    "bits_up": ("few bits\nup", False),
}
"""Columns of a study's summary, and whether more of them is better."""
_BESIDE_IN, _ABOVE_BELOW_IN, _HEAD_IN = 0.65, 0.85, 0.2
"""Room for the names of axes at each side of a circle, for names and title above and below it together, and for the
line above all panels."""
_SCALE = "1: the best of the panel; means over seeds"


def radar_scores(table: pd.DataFrame, names: Sequence[str]) -> Floats:
    """Scores [rows, names] of a study's summary: value over the greatest, or the least over the value, of its rows.

    A value that a row does not have, such as rounds to a target that it never reached, scores 0.
    """
    columns = []
    for name in names:
        values = table[name].to_numpy(np.float64)
        more = AXES[name][1]
        scores = values / np.nanmax(values) if more else np.nanmin(values) / values
        columns.append(np.nan_to_num(scores))
    return np.transpose(columns)


def draw_radar(summary: pd.DataFrame, panel: str, series: str) -> Figure:
    """A panel per value of the knob ``panel``, a polygon per value of the knob ``series``: `radar_scores` of `AXES`.

    Axes of measures that no row has are left out.
    """
    need_columns(summary, [panel, series])
    names = [name for name in AXES if name in summary and summary[name].notna().any()]
    if not names:
        raise EdgesimError(f"the summary has no measure for a radar; expected some of {', '.join(AXES)}")
    labels = list(dict.fromkeys(summary[series]))
    styles = palette.line_styles(labels)
    panels = list(summary.groupby(panel, sort=False))
    angles = np.linspace(0, 2 * np.pi, len(names), endpoint=False)
    across, lines = style.abreast(len(panels)), style.rows_of(len(panels))
    width_in, _ = style.panel_size(len(panels), 0)
    # A row is as high as its circles, which are as wide as the names beside them let them be.
    row_in = width_in / across - 2 * _BESIDE_IN + _ABOVE_BELOW_IN
    with style.figure(width_in, row_in * lines + _HEAD_IN, labels) as figure:
        for place, (value, rows) in enumerate(panels, start=1):
            axes = figure.add_subplot(lines, across, place, projection="polar")
            axes.set_theta_offset(np.pi / 2)  # type: ignore[attr-defined]
            for label, scores in zip(rows[series], radar_scores(rows, names), strict=True):
                closed = np.append(scores, scores[0])
                axes.plot(np.append(angles, angles[0]), closed, **styles[label].marked(1))
            axes.set_xticks(angles, [AXES[name][0] for name in names])
            for text, angle in zip(axes.get_xticklabels(), angles, strict=True):
                # Angles run anticlockwise from the top.
                sideways = np.round(np.sin(angle), 2)
                text.set_horizontalalignment("center" if sideways == 0 else "right" if sideways > 0 else "left")
            axes.tick_params(axis="x", pad=2)
            axes.set(ylim=(0, 1.02), yticks=[0.25, 0.5, 0.75, 1.0], yticklabels=["", "0.5", "", "1"])
            letter = f"({style.letter(place - 1)}) " if len(panels) > 1 else ""
            axes.set_title(f"{letter}{figure_text(str(value))}")
        style.legend_below(figure, [Line2D([], [], **styles[label].marked(1)) for label in labels], labels)
        style.headed(figure, _SCALE)
    return figure
