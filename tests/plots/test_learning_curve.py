import numpy as np
import pytest

from edgesim.plots.learning_curve import draw_learning_curve

OTHERS = {"random": [7.0, 8.0, 9.0], "best-channel": [10.0, 10.5, 11.0]}


def test_a_line_per_agent_over_its_decisions_and_a_level_one_per_policy_with_its_interval_over_seeds():
    figure = draw_learning_curve({"cem": ([640, 1280, 1920], [7.0, 9.0, 11.0])}, OTHERS)
    (axes,) = figure.axes
    learnt, *level = axes.lines
    assert np.array_equal(learnt.get_xydata(), [[640, 7.0], [1280, 9.0], [1920, 11.0]])
    assert [set(line.get_ydata()) for line in level] == [{8.0}, {10.5}]
    # The t interval of three values is 4.303 standard deviations over sqrt(3) wide to each side.
    ends = [(patch.get_y(), patch.get_y() + patch.get_height()) for patch in axes.patches]
    half = 4.3026527 / 3**0.5
    assert ends == [pytest.approx((8 - half, 8 + half)), pytest.approx((10.5 - half / 2, 10.5 + half / 2))]
    (legend,) = figure.legends
    names = ["cem", "random", "best-channel", "95 % band of the dashed lines"]
    assert [text.get_text() for text in legend.get_texts()] == names
    assert axes.get_xlim()[0] == 0
