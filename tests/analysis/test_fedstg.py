"""A study of FedStg beside its paper: made-up runs, and the numbers typed."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCENARIO = runpy.run_path(str(Path(__file__).parents[2] / "scenarios/fedstg.py"))
beside = SCENARIO["beside_the_paper"]


@pytest.fixture
def study(tmp_path, study_writer):
    """FedStg with three seeds, and FedAvg with one, of four rounds each; a failed run."""
    knobs = {"mode": "paper", "dataset": "digits", "pool": "shared"}
    runs = [
        (knobs | {"method": "fedstg"}, seed, "finished", [0.5, 0.7 + seed / 100, 0.6, 0.6 + seed / 100])
        for seed in range(3)
    ]
    runs.append((knobs | {"method": "fedavg"}, 0, "finished", [0.5, 0.6, 0.7, 0.8]))
    runs.append((knobs | {"method": "feddyn"}, 0, "failed", []))
    return study_writer(tmp_path / "study", runs, target=None)


def test_accuracies_and_costs_are_means_with_intervals_beside_the_papers(study):
    table = beside(study).set_index("method")
    assert list(table.index) == ["fedstg", "fedavg"]
    found = table.loc["fedstg"]
    assert found["seeds"] == 3
    # t(0.975, 2) / sqrt(3) = 2.484 for a standard deviation of 1.
    assert found[["final_percent", "final_percent_low"]].tolist() == pytest.approx([61, 61 - 2.484], abs=1e-3)
    assert found[["peak_percent", "peak_percent_high"]].tolist() == pytest.approx([71, 71 + 2.484], abs=1e-3)
    assert (found["peak_round"], found["merged"], found["trained"], found["uploads"]) == (2, 4, 16, 8)
    assert (found["gbit_up"], found["kj"]) == pytest.approx((4 * 3.5e6 / 1e9, 0.024))
    assert (found["final_percent_paper"], found["peak_percent_paper"], found["peak_round_paper"]) == (87.53, 87.53, 100)
    one = table.loc["fedavg"]
    assert (one["final_percent"], one["final_percent_paper"]) == (pytest.approx(80), 82.60)
    assert np.isnan(one[["final_percent_low", "peak_percent_paper", "peak_round_paper"]].astype(float)).all()


def test_bits_sent_to_and_by_devices_whose_work_the_end_cut_count(study):
    run = study / "run3"
    metrics = pd.DataFrame({"round": [5], "name": ["bits_down"], "key": [""], "value": [2e9]})
    rows = pd.concat([pd.read_parquet(run / "metrics.parquet"), metrics.astype({"round": "int32"})])
    rows.to_parquet(run / "metrics.parquet", index=False)
    activities = pd.read_parquet(run / "activities.parquet")
    cut = activities.tail(1).assign(round=np.int32(5), outcome="cancelled", bits=1e9)
    pd.concat([activities, cut]).to_parquet(run / "activities.parquet", index=False)
    found = beside(study).set_index("method").loc["fedavg"]
    assert found[["gbit_up", "gbit_down"]].tolist() == pytest.approx([1 + 4 * 3.5e6 / 1e9, 2])


def test_runs_on_cifar_100_stand_beside_its_table(tmp_path, study_writer):
    knobs = {"mode": "paper", "dataset": "cifar100", "pool": "shared", "method": "feddyn"}
    (row,) = beside(study_writer(tmp_path / "study", [(knobs, 0, "finished", [0.5])], target=None)).to_dict("records")
    assert (row["final_percent_paper"], row["peak_round_paper"]) == (54.86, 44)


def test_the_printed_tables_have_a_row_for_each_method(study, capsys):
    SCENARIO["show_beside"](beside(study))
    told = capsys.readouterr().out
    assert "Accuracy beside the paper's (mode paper, dataset digits, pool shared)" in " ".join(told.split())
    accuracy, cost = [line.split() for line in told.splitlines() if line.startswith("fedstg ")]
    assert accuracy == ["fedstg", "61.00", "±", "2.48", "87.53", "71.00", "±", "2.48", "87.53", "2", "±", "0", "100"]
    assert cost == ["fedstg", "4.0", "16", "8", "0.014", "0", "0.024"]
