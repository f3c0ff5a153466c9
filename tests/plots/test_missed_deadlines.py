"""The figure of missed deadlines: shares over all policies, a line per knowledge, a panel per deadline."""

from types import SimpleNamespace

import pandas as pd
import pytest

from edgesim.plots.missed_deadlines import draw_missed_deadlines


def run(policy, speed_mps, knowledge, tmax_s, seed, late, selected):
    knobs = {"policy": policy, "speed_mps": speed_mps, "path_knowledge": knowledge, "tmax_s": tmax_s}
    return SimpleNamespace(knobs=knobs, seed=seed, rounds=pd.DataFrame({"late": [late, 0], "selected": [selected, 10]}))


def test_a_point_is_the_share_of_all_that_were_taken():
    runs = [
        run(policy, speed, knowledge, tmax_s, seed, late * (knowledge == "present") * (speed > 0), 10)
        for policy, late in (("random", 4), ("fedteddi", 8))
        for speed in (15.0, 0.0)
        for knowledge in ("present", "known")
        for tmax_s in (1.0, 10.0)
        for seed in (0, 1)
    ]
    figure = draw_missed_deadlines(runs, "speed_mps", "path_knowledge", "tmax_s")
    assert [axes.get_title() for axes in figure.axes] != ["", ""]
    assert figure.axes[0].get_ylabel() == "share of uploads that\nmissed the deadline\nmean of 2 seeds"
    for axes in figure.axes:
        present, known = axes.lines
        assert present.get_xdata().tolist() == known.get_xdata().tolist() == [0.0, 15.0]
        # (4 + 8) of the 2 x 20 that two policies took.
        assert present.get_ydata() == pytest.approx([0.0, 0.3])
        assert known.get_ydata() == pytest.approx([0.0, 0.0])
        assert axes.get_xlabel() == "speed of devices (m/s)"


def test_the_axis_that_panels_share_reaches_the_highest_point_of_any():
    runs = [
        run("random", speed, "present", tmax_s, 0, int(tmax_s), 10) for tmax_s in (1.0, 9.0) for speed in (0.0, 1.0)
    ]
    figure = draw_missed_deadlines(runs, "speed_mps", "path_knowledge", "tmax_s")
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low == 0.0
        assert high > 9 / 20
