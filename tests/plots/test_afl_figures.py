"""The figures of AFL's study and of that of privacy."""

import numpy as np
import pandas as pd
import pytest

from edgesim.analysis.metrics import final_accuracy
from edgesim.analysis.runs import read_study
from edgesim.plots.groups import panels_of
from edgesim.plots.noise import draw_noise
from edgesim.plots.radar import draw_radar, radar_scores
from edgesim.plots.scaling import draw_scaling
from edgesim.plots.spread import draw_spread
from edgesim.plots.throughput import draw_throughput


@pytest.fixture
def runs(tmp_path, study_writer):
    study_writer(tmp_path / "study", [{"method": "fedavg-50"}, {"method": "afl"}], seeds=3)
    return read_study(tmp_path / "study").finished


def test_scores_of_a_radar_are_shares_of_the_best_and_none_for_a_target_never_reached():
    table = pd.DataFrame({"final_accuracy": [0.9, 0.45], "bits_up": [2e6, 1e6], "rounds_to_target": [20, np.nan]})
    found = radar_scores(table, ["final_accuracy", "bits_up", "rounds_to_target"])
    assert found.tolist() == [[1, 0.5, 1], [0.5, 1, 0]]


def test_a_radar_has_a_panel_per_skew_and_a_closed_line_per_method():
    rows = [("iid", "a", 0.9, 2e6), ("iid", "b", 0.8, 1e6), ("high", "a", 0.7, 2e6), ("high", "b", 0.6, 1e6)]
    table = pd.DataFrame(rows, columns=["skew", "method", "final_accuracy", "bits_up"])
    figure = draw_radar(table, "skew", "method")
    assert [axes.get_title() for axes in figure.axes] == ["(a) iid", "(b) high"]
    assert figure.get_suptitle() == "1: the best of the panel; means over seeds"
    (alone,) = draw_radar(table[table["skew"] == "high"], "skew", "method").axes
    assert alone.get_title() == "high"
    first = figure.axes[0].lines[1].get_ydata()
    assert first.tolist() == pytest.approx([8 / 9, 1, 8 / 9])


def test_a_point_stands_for_each_runs_final_accuracy(runs):
    (axes,) = draw_spread(panels_of(runs)).axes
    assert sorted(axes.lines[0].get_xdata()) == pytest.approx(sorted(final_accuracy(run.rounds) for run in runs[:3]))


def test_throughput_is_updates_over_the_minutes_of_the_run(runs):
    (axes,) = draw_throughput(panels_of(runs)).axes
    each = [60 * run.rounds["arrived"].sum() / run.rounds["t_end_s"].iloc[-1] for run in runs[:3]]
    assert axes.patches[0].get_width() == pytest.approx(np.mean(each))


def test_scaling_has_a_panel_per_clock_and_the_exponents_in_its_legend(tmp_path, study_writer):
    knobs = [{"method": "afl", "devices": devices} for devices in (10, 100)]
    study_writer(tmp_path / "study", knobs, seeds=2)
    runs = read_study(tmp_path / "study").finished
    for run in runs:
        run.config["devices"] = {"count": run.knobs["devices"]}
        rounds = run.rounds
        ends = run.knobs["devices"] ** 0.5 * np.arange(1, len(rounds) + 1)
        rounds["t_end_s"], rounds["t_start_s"] = ends, ends - ends[0]
        wall = {"round": [1], "part": ["round"], "wall_s": [float(run.knobs["devices"])]}
        pd.DataFrame(wall).to_parquet(run.folder / "timing.parquet")
    figure = draw_scaling(runs, "method")
    assert [axes.get_title() for axes in figure.axes] == ["(a) simulated time", "(b) wall time"]
    (text,) = (text.get_text() for text in figure.legends[0].get_texts())
    assert text.startswith("afl: exponent simulated 0.50")
    assert "wall 1.00" in text
    assert text.endswith("(95 % interval)")


def test_accuracy_is_drawn_over_noise_and_over_the_epsilons_that_there_are(tmp_path, study_writer):
    knobs = [
        {"mechanism": "clip"},
        {"mechanism": "local", "noise": 0.1},
        {"mechanism": "local", "noise": 1.0},
    ]
    study_writer(tmp_path / "study", knobs, seeds=3)
    figure = draw_noise(read_study(tmp_path / "study").finished)
    over_noise, over_epsilon = figure.axes
    assert over_noise.lines[0].get_xdata().tolist() == [0.1, 1.0]
    assert over_noise.get_ylabel() == "final test accuracy\nmean of 3 seeds"
    # Made-up runs have no epsilon: the line of clipping stands alone.
    assert len(over_epsilon.lines) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["local", "clipping alone", "95 % band"]
