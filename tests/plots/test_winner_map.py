"""Maps of winners: which cell has which colour."""

import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from edgesim.plots.winner_map import draw_winner_map

ROWS = [
    {"bandwidth_hz": hz, "tmax_s": tmax_s, "cost": cost, "winner": winner}
    for cost, winners in {"equal seconds": ["sign", "", "topk", "sign"], "equal joules": [None, "none", "", ""]}.items()
    for (hz, tmax_s), winner in zip([(1e6, 0.4), (2e7, 0.4), (1e6, 0.8), (2e7, 0.8)], winners, strict=True)
]


def colors_of(figure, panel):
    cells = [patch for patch in figure.axes[panel].patches if isinstance(patch, Rectangle)]
    return {(round(cell.get_x() + 0.5), round(cell.get_y() + 0.5)): to_hex(cell.get_facecolor()) for cell in cells}


def test_equal_winners_have_equal_colours_and_places_without_one_are_grey():
    figure = draw_winner_map(pd.DataFrame(ROWS), "bandwidth_hz", "tmax_s", "winner", "cost")
    seconds, joules = colors_of(figure, 0), colors_of(figure, 1)
    assert seconds[0, 0] == seconds[1, 1]
    assert len({seconds[0, 0], seconds[1, 0], seconds[0, 1], joules[1, 0]}) == 4
    assert seconds[1, 0] == joules[0, 0] == joules[0, 1] == joules[1, 1]
    (legend,) = figure.legends
    named = dict(zip([text.get_text() for text in legend.get_texts()], legend.get_patches(), strict=True))
    assert set(named) == {"sign", "topk", "none", "no significant winner"}
    assert to_hex(named["sign"].get_facecolor()) == seconds[0, 0]


def test_numbers_ascend_and_places_that_were_not_run_stay_empty():
    figure = draw_winner_map(pd.DataFrame(ROWS[::-1])[:3], "bandwidth_hz", "tmax_s", "winner", "cost")
    axes = figure.axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "20"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["0.4", "0.8"]
    assert len(colors_of(figure, 0)) == 3
    with pytest.raises(Exception, match="tmax_s"):
        draw_winner_map(pd.DataFrame(ROWS).drop(columns="tmax_s"), "bandwidth_hz", "tmax_s", "winner", "cost")
