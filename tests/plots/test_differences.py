"""The figure of paired differences: who counts, and what stands beside."""

import pytest

from edgesim.analysis.differences import Difference
from edgesim.analysis.runs import Run
from edgesim.plots.differences import draw_differences


def pair(folder, seed, policy, seconds, scheduled=1.0, censored=False) -> Difference:
    run = Run(folder / f"{policy}-{seed}", {"policy": policy, "tmax_s": 1.0}, seed)
    values = {"scheduled": scheduled, "arrived": 3 * scheduled}
    if not censored:
        values["seconds_to_target"] = seconds
    return Difference(run, values, censored, {})


@pytest.fixture
def found(tmp_path) -> list[Difference]:
    some = [pair(tmp_path, s, "some", seconds, censored=s == 3) for s, seconds in enumerate((1.0, 2.0, 3.0, 500.0))]
    return some + [pair(tmp_path, s, "none", 500.0 + s, censored=True) for s in range(4)]


def panel(figure, title):
    return next(axes for axes in figure.axes if axes.get_title().endswith(title))


def test_pairs_of_which_a_run_never_reached_the_target_are_left_out_and_the_figure_says_so(found):
    axes = panel(draw_differences(found, "random"), "time to the target")
    points = [line.get_xdata()[0] for line in axes.get_lines() if line.get_linestyle() == "None"]
    assert points == [2.0]
    assert {text.get_text() for text in axes.texts} == {"3 of 4", "0 of 4"}
    assert "5 of 8 pairs left out" in axes.get_xlabel()
    # Nor do they stretch the scale.
    assert axes.get_xlim()[1] < 10


def test_censored_pairs_count_in_what_needs_no_target(found):
    axes = panel(draw_differences(found, "random"), "scheduled")
    assert [line.get_xdata()[0] for line in axes.get_lines() if line.get_linestyle() == "None"] == [1.0, 1.0]
    assert "left out" not in axes.get_xlabel()


def test_devices_scheduled_and_arrived_share_a_scale(found):
    figure = draw_differences(found, "random")
    assert panel(figure, "scheduled").get_xlim() == panel(figure, "arrived").get_xlim()


def test_two_pairs_have_no_interval(tmp_path):
    two = [pair(tmp_path, seed, "some", 1.0 + seed) for seed in range(2)]
    axes = panel(draw_differences(two, "random"), "time to the target")
    assert [line.get_xdata()[0] for line in axes.get_lines() if line.get_linestyle() == "None"] == [1.5]
    assert not [segment for bars in axes.collections for segment in bars.get_segments() if len(segment)]
