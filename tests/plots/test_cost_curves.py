"""Runs of two-second rounds with 3.5e6 bits and 6 J each; three panels in each row: seconds, bits, joules."""

import pytest

from edgesim.analysis.runs import RunFolder, read_study
from edgesim.plots.cost_curves import draw_cost_curves
from edgesim.plots.palette import line_styles


def test_a_row_per_bandwidth_has_panels_of_seconds_bits_and_joules_of_one_scale(tmp_path, study_writer):
    """Two algorithms at 5 MHz, one at 80 MHz."""
    knobs = [{"algorithm": name, "bandwidth_hz": band} for name, band in (("a", 5e6), ("b", 5e6), ("b", 80e6))]
    study_writer(tmp_path / "study", knobs, seeds=3)
    figure = draw_cost_curves(read_study(tmp_path / "study").finished, "bandwidth_hz", "algorithm", ["a"])
    labels = ["simulated time (s)", "bits sent up (Mbit)", "energy of all devices (J)"]
    assert [axes.get_xlabel() for axes in figure.axes] == labels * 2
    titles = [axes.get_title() for axes in figure.axes]
    assert (titles[0], titles[5]) == ("(a) bandwidth = 5 MHz", "(f) bandwidth = 80 MHz")
    look = line_styles(["a", "b"])
    colors = [[line.get_color() for line in axes.lines] for axes in figure.axes]
    assert colors == [[look["a"].color, look["b"].color]] * 3 + [[look["b"].color]] * 3
    assert [len(axes.collections) for axes in figure.axes] == [1, 1, 1, 0, 0, 0]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "95 % band of the thick lines"]
    # No mean leaves the scale on which high accuracies can be told apart.
    low, high = figure.axes[0].get_ylim()
    values = [value for axes in figure.axes for line in axes.lines for value in line.get_ydata()]
    assert 0 < low < min(values) < max(values) < high < 1
    assert {(axes.get_ylim(), axes.get_yscale()) for axes in figure.axes} == {((low, high), "logit")}


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
