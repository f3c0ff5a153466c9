import numpy as np
import pytest
from whole_runs import TIMED, play

from edgesim.analysis.runs import RunFolder, runs_of
from edgesim.plots.band_use import draw_band_use
from edgesim.plots.battery import draw_battery, has_batteries


def simulated(folder, **sections) -> RunFolder:
    played = play(folder, TIMED, {"rounds": 4, "round": {"payload_bits": 17_881_664.0}}, sections)
    return RunFolder(played.folder, {}, 0)


def test_the_area_under_the_curve_is_that_of_all_uploads_and_ten_rounds_are_shown(tmp_path, run_writer):
    run = runs_of([run_writer(tmp_path / "run", rounds=14)])[0]
    figure = draw_band_use(run, 3)
    (axes,) = figure.axes
    curve = next(line for line in axes.get_lines() if line.get_drawstyle() == "steps-post")
    t_s, share = (np.asarray(part, dtype=float) for part in curve.get_data())
    uploads = run.activities.query("activity == 'upload'")
    hertz_s = (uploads["bandwidth_hz"] * (uploads["t_end_s"] - uploads["t_start_s"])).sum()
    assert np.diff(t_s) @ share[:-1] * 20e6 == pytest.approx(hertz_s)
    assert share.max() <= 1 + 1e-9
    rounds = run.rounds
    assert axes.get_xlim() == (rounds["t_start_s"][2], rounds["t_end_s"][11])
    mean = hertz_s / 20e6 / rounds["t_end_s"].iloc[-1]
    assert axes.get_title() == f"mean of the run {mean:.2f}"
    assert axes.get_xlabel() == "simulated time (s)"
    assert not figure.get_suptitle()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["end of a round", "mean of the run"]
    assert figure.get_supylabel() == "share of the band in use"


def test_every_station_has_a_panel_of_its_own_band(tmp_path):
    run = simulated(tmp_path, devices={"count": 60}, topology={"file": "three-cells"})
    figure = draw_band_use(run)
    assert [axes.get_title().partition(",")[0] for axes in figure.axes] == [
        f"({letter}) {name}" for letter, name in zip("abc", run.stations["name"], strict=True)
    ]
    for axes in figure.axes:
        (curve,) = (line for line in axes.get_lines() if line.get_drawstyle() == "steps-post")
        assert 0.3 < max(curve.get_ydata()) <= 1 + 1e-9


def test_a_band_that_is_shared_anew_is_full_or_empty(tmp_path, run_writer):
    (run,) = runs_of([run_writer(tmp_path / "run", rounds=3, extra={"radio": {"sharing": "reshared"}})])
    (axes,) = draw_band_use(run).axes
    (curve,) = (line for line in axes.get_lines() if line.get_drawstyle() == "steps-post")
    assert set(curve.get_ydata()) == {0.0, 1.0}


def test_the_batteries_charge_is_drawn_with_the_reserve(tmp_path):
    assert not has_batteries(simulated(tmp_path / "mains"))
    run = simulated(tmp_path / "battery", devices={"battery_j": 8.0, "battery_reserve": 0.25, "recharge_w": 0.2})
    assert has_batteries(run)
    (axes,) = draw_battery(run).axes
    mean, least, reserve = axes.get_lines()
    table = run.metrics.query("name == 'battery_j'").pivot(index="round", columns="key", values="value")
    assert mean.get_ydata().tolist() == table["mean"].tolist()
    assert least.get_ydata().tolist() == table["least"].tolist()
    assert mean.get_xdata().tolist() == run.rounds["t_end_s"].tolist()
    assert set(reserve.get_ydata()) == {2.0}
    assert axes.get_ylim() == (0, pytest.approx(8.32))
