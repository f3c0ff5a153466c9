import numpy as np

from edgesim.plots.learning_curve import draw_learning_curve


def test_a_line_per_agent_over_its_decisions_and_a_level_one_per_policy():
    figure = draw_learning_curve({"cem": ([640, 1280, 1920], [7.0, 9.0, 11.0])}, {"random": 7.6, "best-channel": 10.6})
    (axes,) = figure.axes
    learnt, *level = axes.lines
    assert np.array_equal(learnt.get_xydata(), [[640, 7.0], [1280, 9.0], [1920, 11.0]])
    assert [set(line.get_ydata()) for line in level] == [{7.6}, {10.6}]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["cem", "random", "best-channel"]
    assert axes.get_xlim()[0] == 0
