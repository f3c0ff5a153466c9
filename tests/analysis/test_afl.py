"""A study of AFL beside the numbers of its paper, on made-up runs."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

import edgesim

SCENARIO = runpy.run_path(str(Path(__file__).parents[2] / "scenarios/afl.py"))


@pytest.fixture
def study(tmp_path, study_writer):
    """Two skews, three seeds; AFL is 1, 2 and 3 points behind FedAvg, and under high skew level with it."""
    runs = []
    for skew in ("iid", "high"):
        for method in ("fedavg-50", "afl"):
            for seed in range(3):
                behind = (1 + seed) / 100 * (skew == "iid" and method == "afl")
                runs.append(({"skew": skew, "method": method}, seed, "finished", [0.6] + [0.9 - behind] * 6))
    folder = study_writer(tmp_path / "study", runs)
    for path in folder.glob("run*/rounds.parquet"):
        pd.read_parquet(path).assign(bits_down=4.5e6).to_parquet(path)
    return folder


def test_methods_stand_beside_the_paper_and_are_compared_under_the_same_skew(study, capsys):
    means, differences = found = SCENARIO["beside_the_paper"](edgesim.StudyResult(study), "fedavg-50")
    by = means.set_index(["skew", "method"])
    iid, high = by.loc[("iid", "afl")], by.loc[("high", "afl")]
    assert iid["final_accuracy"] == pytest.approx(0.88)
    assert (iid["final_accuracy_paper"], high["rounds_to_own_peak_paper"]) == (0.918, 162)
    # Seven rounds of 7e6 bits up, late ones among them, or 4.5e6 down.
    assert iid["gigabytes"] == pytest.approx(7 * (3.5e6 + 4.5e6) / 8e9)
    assert (iid["not_reached"], iid["rounds_to_target"]) == (0, 2)
    differences = differences.set_index(["skew", "method", "measure"])
    assert {method for _, method, _ in differences.index} == {"afl"}
    accuracy = differences.loc[("iid", "afl", "final_accuracy")]
    assert accuracy["difference"] == pytest.approx(-0.02)
    # t(0.975, 2) / sqrt(3) = 2.484 for a standard deviation of a point.
    assert [accuracy["low"], accuracy["high"]] == pytest.approx([-0.02 - 0.02484, -0.02 + 0.02484], abs=1e-5)
    assert differences.loc[("high", "afl", "final_accuracy"), "difference"] == 0
    SCENARIO["show_beside"](*found, "fedavg-50")
    said = capsys.readouterr().out
    assert "-0.020 ± 0.025" in said
    assert "0.918" in said
