"""Runs of two-second rounds with 3.5e6 bits and 6 J each; three panels in each row: seconds, bits, joules."""

import pytest

from edgesim.analysis.runs import RunFolder, read_study
from edgesim.plots.cost_curves import draw_cost_curves
from edgesim.plots.palette import line_styles


def runs_of(study_writer, folder, seeds=3):
    """Two algorithms at 5 MHz, one at 80 MHz."""
    knobs = [{"algorithm": name, "bandwidth_hz": band} for name, band in (("a", 5e6), ("b", 5e6), ("b", 80e6))]
    study_writer(folder, knobs, seeds=seeds)
    return read_study(folder).finished


def test_a_row_per_bandwidth_has_panels_of_seconds_bits_and_joules_with_their_units(tmp_path, study_writer):
    figure = draw_cost_curves(runs_of(study_writer, tmp_path / "study"), "bandwidth_hz", "algorithm", ["a"])
    labels = ["simulated time (s)", "bits sent up (Mbit)", "energy of all devices (J)"]
    assert [axes.get_xlabel() for axes in figure.axes] == labels * 2
    assert [axes.get_ylabel() for axes in figure.axes] == ["test accuracy,\nlogit scale\nmean of 3 seeds", "", ""] * 2
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[0] == "(a) bandwidth = 5 MHz"
    assert titles[5] == "(f) bandwidth = 80 MHz"
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 2, 1, 1, 1]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "95 % band of the thick lines"]


def test_the_same_series_looks_the_same_everywhere_and_the_foremost_have_bands(tmp_path, study_writer):
    figure = draw_cost_curves(runs_of(study_writer, tmp_path / "study"), "bandwidth_hz", "algorithm", ["a"])
    colors = [[line.get_color() for line in axes.lines] for axes in figure.axes]
    look = line_styles(["a", "b"])
    assert colors == [[look["a"].color, look["b"].color]] * 3 + [[look["b"].color]] * 3
    assert [len(axes.collections) for axes in figure.axes] == [1, 1, 1, 0, 0, 0]


def test_a_line_holds_each_models_accuracy_until_the_next_test_and_ends_where_the_run_does(tmp_path, run_writer):
    folder = run_writer(tmp_path / "run", rounds=4)
    run = RunFolder(folder, {"algorithm": "a", "bandwidth_hz": 5e6}, 0)
    seconds, bits, joules = draw_cost_curves([run], "bandwidth_hz", "algorithm").axes
    accuracy = run.rounds["test_accuracy"].tolist()
    for axes, per_round in ((seconds, 1.0), (bits, run.rounds["bits_up"].iloc[0] * 1e-6), (joules, 3.0)):
        ((line,),) = [axes.lines]
        at, values = line.get_data()
        assert (at[0], values[0]) == (0, 0.5)
        assert at[-1] == pytest.approx(4 * per_round)
        held = (at > 1.01 * per_round) & (at < 1.99 * per_round)
        assert set(values[held]) == {accuracy[0]}
        assert not axes.collections


def test_two_seeds_have_no_band(tmp_path, study_writer):
    figure = draw_cost_curves(runs_of(study_writer, tmp_path / "study", 2), "bandwidth_hz", "algorithm", ["a"])
    assert not any(axes.collections for axes in figure.axes)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_no_mean_leaves_the_scale_on_which_high_accuracies_can_be_told_apart(tmp_path, study_writer):
    figure = draw_cost_curves(runs_of(study_writer, tmp_path / "study"), "bandwidth_hz", "algorithm", ["a"])
    low, high = figure.axes[0].get_ylim()
    values = [value for axes in figure.axes for line in axes.lines for value in line.get_ydata()]
    assert 0 < low < min(values) < max(values) < high < 1
    assert {axes.get_ylim() for axes in figure.axes} == {(low, high)}
    assert figure.axes[0].get_yscale() == "logit"
