"""Figures of a tuning: the legend of its objectives over trials, and the intervals of its Pareto front."""

import numpy as np
import pandas as pd

from edgesim.plots.tuning import draw_front, draw_history

NOT_REACHED = "given up, or target not reached: at least this"


def legend(counts, bounds):
    """Texts of the legend of two trials; a trial that does not count may have a bound."""
    values = np.where(counts, 3.0, np.nan)
    columns = {"trial": [0, 1], "counts": counts, "seconds_to_target": values, "seconds_to_target_bound": bounds}
    figure = draw_history(pd.DataFrame(columns), {"seconds_to_target": False})
    return [text.get_text() for of in figure.legends for text in of.get_texts()]


def test_the_legend_names_what_is_drawn_and_nothing_else():
    assert legend([True, True], [np.nan, np.nan]) == ["trial, mean over seeds", "best so far"]
    assert legend([True, False], [np.nan, 9.0]) == ["trial, mean over seeds", "best so far", NOT_REACHED]
    assert legend([False, False], [7.0, 9.0]) == [NOT_REACHED]
    assert legend([False, False], [np.nan, np.nan]) == []


def test_intervals_of_a_front_end_at_zero_seconds():
    ends = {"seconds_to_target_low": [-1.0], "seconds_to_target_high": [9.0]}
    ends |= {"joules_to_target_low": [30.0], "joules_to_target_high": [70.0]}
    front = pd.DataFrame(
        {"counts": [True], "seeds": [3], "seconds_to_target": [4.0], "joules_to_target": [50.0]} | ends
    )
    (axes,) = draw_front(front, front, ["seconds_to_target", "joules_to_target"]).axes
    (bars,) = axes.containers
    across, up = (lines.get_segments()[0] for lines in bars.lines[2])
    assert sorted(point[0] for point in across) == [0.0, 9.0]
    assert sorted(point[1] for point in up) == [30.0, 70.0]
