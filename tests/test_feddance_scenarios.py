"""The scenarios of FedDance's comparison, as a user starts them."""

import runpy
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from edgesim.folder.records import read_table
from edgesim.scenario import Runs
from edgesim.simulation import composition as simulation

SCENARIOS = Path(__file__).parents[1] / "scenarios"


def start(script, *arguments, cwd):
    command = [sys.executable, str(SCENARIOS / script), *arguments, "--out", "out"]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def planned():
    """The study's one run of a policy, five rounds of digits."""
    scenario = runpy.run_path(str(SCENARIOS / "feddance.py"))

    def plan(policy):
        base = scenario["phones"]("digits", "digits", "sample-week", "same", 60, 5, 5)
        runs = Runs()
        scenario["add"](runs, base, [policy], {})
        return runs.planned[0].config

    return plan


def test_under_safa_everybody_there_trains_and_a_tenth_is_merged(planned, tmp_path):
    config = planned("safa")
    config = config.model_copy(update={"learning": config.learning.model_copy(update={"training": "none"})})
    simulation.run(simulation.complete(config), tmp_path / "run")
    acts, rounds = (read_table(tmp_path / "run", name) for name in ("activities", "rounds"))
    computing = acts[acts["activity"] == "compute"].groupby("round")["device"].nunique()
    assert rounds["candidates"].min() > 5
    assert computing.tolist() == rounds["candidates"].tolist()


def test_on_own_links_fedcs_has_no_upload_wait_for_another(planned):
    assert planned("fedcs").selection.options == {"uploads": "parallel"}
    assert planned("random").selection.options == {}


@pytest.mark.slow
def test_the_predictors_are_judged_against_what_came(tmp_path):
    """Device 0 is always there, device 1 never, device 2 comes in the last third: hits and misses can be counted."""
    (tmp_path / "three.csv").write_text("device,start_s,end_s\n0,0,6000\n2,4000,6000\n3,0,1\n")
    arguments = ["--traces", "three.csv", "--minutes", "100", "--history", "10", "--future", "2"]
    done = start(
        "availability_predictor.py", *arguments, "--histories", "5,10", "--futures", "1,2", cwd=tmp_path
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
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
    for name in ("sensitivity", "over_time", "costs"):
        assert (tmp_path / f"out/plots/{name}.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("script", "arguments", "expected"),
    [
        ("feddance.py", ["--skew", "odd"], "--skew: unknown 'odd'; known: same, preprint, available, rare"),
        ("feddance.py", ["--dataset", "speech"], "not a data set; give --dataset FOLDER --setting speech"),
        ("feddance.py", ["--dataset", "tiny-imagenet"], "give --dataset FOLDER --setting tiny-imagenet"),
        ("feddance.py", ["--selectors", "fedance"], "did you mean 'feddance'"),
        ("feddance_ablation.py", ["--windows", "1"], "accuracy_window"),
        ("availability_predictor.py", ["--minutes", "10"], "do not fit into a log of 6"),
        ("availability_predictor.py", ["--predictors", "oracle"], "unknown 'oracle'; known: arima"),
    ],
)
def test_bad_input_is_one_line(tmp_path, scenario, script, arguments, expected):
    done = scenario(script, *arguments, "--out", "out")
    assert done.exit_code == 2, done.output
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--participants", "190"], "never more than"),
        (["--trace", "nowhere"], "no file 'nowhere'"),
        (["--dataset", "fashion-mnist", "--folder", "nowhere"], "fashion-mnist is not there"),
    ],
)
def test_a_study_none_of_whose_runs_can_begin_is_one_line(tmp_path, scenario, arguments, expected):
    done = scenario("feddance.py", *arguments, "--selectors", "random", "--seeds", "2", "--out", "out")
    assert done.exit_code == (2 if "--trace" in arguments else 1), done.output
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    # What the scenario says it is about, and nothing of the runs.
    assert done.stdout.strip().count("\n") == 0
    assert list(tmp_path.iterdir()) == []


def test_a_study_none_of_whose_runs_gets_beyond_its_start_is_one_line(scenario):
    arguments = ["--target", "0.001", "--rounds", "1", "--devices", "60", "--selectors", "random", "--seeds", "1"]
    done = scenario("feddance.py", *arguments, "--out", "out")
    assert done.exit_code == 1, done.output
    assert "target 0.001 must lie above the start accuracy" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout.strip().count("\n") == 0
