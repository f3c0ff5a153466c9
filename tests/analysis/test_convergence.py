import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from edgesim.analysis.convergence import convergence_measures, growth, growth_table, roughness, to_own_peak
from edgesim.analysis.runs import RunFolder
from edgesim.base.errors import EdgesimError


def table_of(accuracy):
    rounds = 5 * np.arange(1, len(accuracy) + 1)
    return pd.DataFrame({"round": rounds, "t_s": 2.0 * rounds, "accuracy": accuracy})


def test_the_first_crossing_of_95_percent_of_the_own_peak_counts():
    """Of .8 that is .76: the third test, although the fourth is below it."""
    found = to_own_peak(table_of([0.3, 0.7, 0.77, 0.6, 0.8, 0.75]))
    assert found == (15, 30, True)
    assert to_own_peak(table_of([0.3, 0.7, 0.77, 0.6, 0.8]), share=1.0).round == 25
    assert to_own_peak(table_of([0.4])).round == 5


def test_roughness_is_the_mean_size_of_second_differences():
    assert roughness(np.array([2.3, 1.9, 1.95, 1.6, 1.5, 1.55])) == pytest.approx(0.3125, abs=1e-12)
    assert roughness(np.linspace(3, 1, 9)) == pytest.approx(0, abs=1e-12)
    assert np.isnan(roughness(np.array([1.0, 2.0])))


def test_growth_is_the_slope_of_logarithms_with_its_interval():
    devices = np.array([10, 50, 100, 200, 500, 500.0])
    seconds = 3 * devices**1.28 * np.array([1.05, 0.93, 1.1, 0.97, 1.02, 0.99])
    found = growth(devices, seconds)
    fit = sm.OLS(np.log(seconds), sm.add_constant(np.log(devices))).fit()
    assert found == pytest.approx((fit.params[1], *fit.conf_int(0.05)[1]), rel=1e-10)
    assert growth(devices, 7 * devices**1.12) == pytest.approx((1.12, 1.12, 1.12), abs=1e-6)
    two = np.array([10.0, 1000.0])
    found = growth(two, np.array([2.0, 20.0]))
    assert found.exponent == pytest.approx(0.5)
    assert np.isnan([found.low, found.high]).all()
    with pytest.raises(EdgesimError, match="two numbers of devices or more"):
        growth(np.array([10.0, 10.0]), np.array([1.0, 2.0]))
    with pytest.raises(EdgesimError, match="above 0"):
        growth(two, np.array([1.0, 0.0]))


def rewritten(folder, table, **columns):
    """A run's table with other columns, or with those columns alone where it has no rows."""
    path = folder / f"{table}.parquet"
    rows = pd.read_parquet(path)
    (rows.assign(**columns) if len(rows) else pd.DataFrame(columns)).to_parquet(path)


def test_measures_of_a_run_are_those_of_its_tests_and_of_whole_rounds(tmp_path, run_writer):
    folder = run_writer(tmp_path / "run", [0.5, 0.6, 0.79, 0.7, 0.8, 0.8])
    losses = [2.3, 1.9, 1.95, 1.6, 1.5, 1.55]
    f1 = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    rewritten(folder, "rounds", test_loss=losses, macro_f1=f1, bits_down=[1e6] * 6)
    metrics = pd.read_parquet(folder / "metrics.parquet")
    further = {"round": range(1, 7), "name": "roc_auc", "key": "", "value": [0.0, 0.5, 0.6, 0.7, 0.8, 0.9]}
    cosines = {"round": [2, 3], "name": "update_cosine", "key": "", "value": [0.5, -0.25]}
    pd.concat([metrics, pd.DataFrame(further), pd.DataFrame(cosines)]).to_parquet(folder / "metrics.parquet")
    assert convergence_measures(RunFolder(folder, {}, 0)) == pytest.approx(
        {
            "bits_down": 6e6,
            "final_macro_f1": 0.3,
            "final_roc_auc": 0.7,
            "update_cosine": 0.125,
            "best_round": 5,
            "rounds_to_own_peak": 3,
            "seconds_to_own_peak": 6,
            "loss_roughness": 0.3125,
        },
        abs=1e-12,
    )


def test_a_run_of_frames_whose_tests_differ_has_no_peak_and_one_without_tests_bits_alone(tmp_path, run_writer):
    frames = run_writer(tmp_path / "frames", [0.5, 0.6, 0.7])
    rewritten(frames, "rounds", frame=[1, 1, 2], macro_f1=[0.1, 0.2, 0.6], bits_down=[1.0] * 3)
    assert convergence_measures(RunFolder(frames, {}, 0)) == pytest.approx({"bits_down": 3, "final_macro_f1": 0.3})
    timing = run_writer(tmp_path / "timing", [None, None], start=None)
    rewritten(timing, "rounds", bits_down=[1.0] * 2)
    assert convergence_measures(RunFolder(timing, {}, 0)) == {"bits_down": 2}


def timed(folder, run_writer, method, devices, exponents):
    """A run whose rounds take so many powers of the number of devices, in simulated and in wall time."""
    run_writer(folder, [0.5, 0.6], config={"devices": {"count": devices}})
    length_s = 3 * devices ** exponents[0]
    rewritten(folder, "rounds", t_start_s=[0, length_s], t_end_s=[length_s, 2 * length_s])
    wall = {"round": [1, 1, 2, 2, 3, 3], "part": ["decide", "round"] * 3}
    # The first round warms up; the median does not see it.
    wall_s = devices ** exponents[1] * np.array([1, 100, 1, 7, 1, 7])
    pd.DataFrame(wall | {"wall_s": wall_s}).to_parquet(folder / "timing.parquet")
    return RunFolder(folder, {"method": method, "devices": devices}, 0)


def test_growth_with_devices_is_told_of_runs_that_are_alike_otherwise(tmp_path, run_writer):
    laws = {"a": (1.28, 0.5), "b": (1.12, 1.0)}
    runs = [
        timed(tmp_path / f"{name}{devices}", run_writer, name, devices, law)
        for name, law in laws.items()
        for devices in (10, 50, 200)
    ]
    alone = timed(tmp_path / "alone", run_writer, "c", 10, (1.0, 1.0))
    table = growth_table([*runs, alone]).set_index("method")
    assert table.index.tolist() == ["a", "b"]
    assert table[["runs", "fewest", "most"]].to_numpy().tolist() == [[3, 10, 200]] * 2
    assert table["simulated"].tolist() == pytest.approx([1.28, 1.12], abs=1e-9)
    assert table["wall"].tolist() == pytest.approx([0.5, 1.0], abs=1e-9)
    assert table["simulated_high"].tolist() == pytest.approx([1.28, 1.12], abs=1e-6)
    assert growth_table([alone]).empty
