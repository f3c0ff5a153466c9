"""Maps of winners: which choice is shown to be the best over two knobs, grey where none is."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from edgesim.analysis.needed import need_columns
from edgesim.base.plain_text import figure_text
from edgesim.plots import palette, style
from edgesim.plots.groups import quantity

_GREY = "#D8D8D8"


def draw_winner_map(winners: pd.DataFrame, x: str, y: str, winner: str, panel: str) -> Figure:
    """One panel for each value of ``panel``, a cell for each pair of numbers of the knobs ``x`` and ``y``.

    The column ``winner`` has the name of the choice that is better than all others, or nothing (nan or an empty text)
    where none is shown to be, which is grey. A cell without a row is white.
    """
    need_columns(winners, [x, y, winner, panel])
    across, up = (quantity(name, float(winners[name].abs().max())) for name in (x, y))
    columns, rows = (sorted(winners[name].unique()) for name in (x, y))
    found = winners[winner].fillna("")
    won = list(dict.fromkeys(found[found != ""]))
    colors = {name: look.color for name, look in palette.line_styles(won).items()} | {"": _GREY}
    panels = list(dict.fromkeys(winners[panel]))
    with style.figure(max(style.COLUMN_IN, 2.2 * len(panels)), 1.5 + 0.45 * len(rows)) as figure:
        for axes, name in zip(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels, strict=True):
            for _, row in winners.assign(**{winner: found})[winners[panel] == name].iterrows():
                corner = columns.index(row[x]) - 0.5, rows.index(row[y]) - 0.5
                axes.add_patch(Rectangle(corner, 1, 1, facecolor=colors[row[winner]], edgecolor="white", linewidth=1))
            axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(rows) - 0.5))
            axes.set_xticks(range(len(columns)), [f"{value * across.factor:g}" for value in columns])
            axes.set_yticks(range(len(rows)), [f"{value * up.factor:g}" for value in rows])
            axes.set(xlabel=across.axis, title=figure_text(str(name)))
            axes.tick_params(length=0)
        figure.axes[0].set_ylabel(up.axis)
        handles = [Patch(facecolor=colors[choice], label=figure_text(choice)) for choice in won]
        if (found == "").any():
            handles.append(Patch(facecolor=_GREY, label="no significant winner"))
        style.legend_below(figure, handles, [str(handle.get_label()) for handle in handles])
    return figure
