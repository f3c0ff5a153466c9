"""The scenarios of FedDance's comparison: what they plan, count and refuse."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

from edgesim.scenario import Runs

SCRIPT = Path(__file__).parents[2] / "scenarios/feddance.py"


def test_on_own_links_fedcs_has_no_upload_wait_for_another():
    of, runs = runpy.run_path(str(SCRIPT)), Runs()
    of["add"](runs, of["phones"]("digits", "digits", "sample-week", "same", 60, 5, 5), ["fedcs", "random"], {})
    options = {run.config.selection.policy: run.config.selection.options for run in runs.planned}
    assert options == {"fedcs": {"uploads": "parallel"}, "random": {}}


@pytest.mark.slow
def test_the_predictors_are_judged_against_what_came(tmp_path, scenario):
    """Device 0 is always there, device 1 never, device 2 comes in the last third: hits and misses can be counted."""
    (tmp_path / "three.csv").write_text("device,start_s,end_s\n0,0,6000\n2,4000,6000\n3,0,1\n")
    arguments = ["--traces", "three.csv", "--minutes", "100", "--history", "10", "--future", "2"]
    done = scenario("availability_predictor.py", *arguments, "--histories", "5,10", "--futures", "1,2", "--out", "out")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "out/predictors.csv").set_index("predictor")
    # Rounds 10 to 58. Device 2 comes in 39 to 58; persistence misses 39 and 40, Poisson (lambda K > ln 2, so four
    # check-ins of ten) 39 to 43.
    assert table["forecasts"].tolist() == [4 * 49] * 2
    assert table["came"].tolist() == pytest.approx([(49 + 20) / 196] * 2)
    assert table["accuracy"].to_dict() == pytest.approx({"persistence": 1 - 2 / 196, "poisson": 1 - 5 / 196})
    assert table["precision"].tolist() == [1.0, 1.0]
    sensitivity = pd.read_csv(tmp_path / "out/sensitivity.csv")
    assert len(sensitivity) == 3
    overheads = pd.read_csv(tmp_path / "out/overheads.csv").set_index("selector")["mean_ms"]
    # Reading off logits is cheaper by orders than a pass over 131 images and than fitting a model.
    assert 0 < overheads["FedDance"] < min(overheads["Oort"], overheads["REFL"]) / 10
    assert (overheads[["random", "SAFA", "FedCS", "availability-first"]] == 0).all()


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["--participants", "190"], 1, "never more than"),
        (["--trace", "nowhere"], 2, "no file 'nowhere'"),
        (["--dataset", "fashion-mnist", "--folder", "nowhere"], 1, "fashion-mnist is not there"),
        (
            ["--target", "0.001", "--rounds", "1", "--devices", "60"],
            1,
            "target 0.001 must lie above the start accuracy",
        ),
    ],
)
def test_a_study_none_of_whose_runs_gets_beyond_its_start_is_one_line(scenario, arguments, status, expected):
    done = scenario("feddance.py", *arguments, "--selectors", "random", "--seeds", "2", "--out", "out")
    assert done.exit_code == status, done.output
    # On a busy machine a line tells how far the study is.
    (error,) = [line for line in done.stderr.splitlines() if " runs finished" not in line]
    assert expected in error
    # What the scenario says it is about, and nothing of the runs.
    assert done.stdout.strip().count("\n") == 0
