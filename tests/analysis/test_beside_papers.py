"""Studies of scenarios beside the numbers of their papers: made-up runs, and the numbers typed."""

import runpy
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from edited_runs import edit_table
from whole_runs import TIMED, play

import edgesim
from edgesim.analysis.measures import measure
from edgesim.analysis.runs import RunFolder


@cache
def of(scenario: str) -> dict:
    """What a scenario's file defines."""
    return runpy.run_path(str(Path(__file__).parents[2] / f"scenarios/{scenario}.py"))


HALF = 2.484
"""t(0.975, 2) / sqrt(3): half of an interval of three seeds whose standard deviation is 1."""
WEEK = {"random": [0.2, 0.4, 0.6, 0.8], "feddance": [0.4, 0.9, 0.9, 0.9], "fedcs": [0.2, 0.3, 0.3, 0.3]}


def test_methods_of_afl_stand_beside_its_paper_and_are_compared_under_the_same_skew(tmp_path, study_writer, capsys):
    """Two skews, three seeds; AFL is 1, 2 and 3 points behind FedAvg, and under high skew level with it."""
    runs = []
    for skew in ("iid", "high"):
        for method in ("fedavg-50", "afl"):
            for seed in range(3):
                behind = (1 + seed) / 100 * (skew == "iid" and method == "afl")
                runs.append(({"skew": skew, "method": method}, seed, "finished", [0.6] + [0.9 - behind] * 6))
    study = study_writer(tmp_path / "study", runs)
    for run in study.glob("run*"):
        edit_table(run, "rounds", lambda rows: rows.assign(bits_down=4.5e6))
    means, differences = found = of("afl")["beside_the_paper"](edgesim.StudyResult(study), "fedavg-50")
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
    ends = (accuracy["difference"], accuracy["low"], accuracy["high"])
    assert ends == pytest.approx((-0.02, -0.02 - HALF / 100, -0.02 + HALF / 100), abs=1e-5)
    assert differences.loc[("high", "afl", "final_accuracy"), "difference"] == 0
    of("afl")["show_beside"](*found, "fedavg-50")
    said = capsys.readouterr().out
    assert "-0.020 ± 0.025" in said
    assert "0.918" in said


def test_bytes_of_both_directions_are_those_of_afls_page(tmp_path):
    """T9: 1 MB, 5 devices, 10 rounds: 100 MB."""
    sizes = {"admission": "count", "count": 5, "payload_bits": 8e6, "allocator": "equal_share", "tmax_s": 600.0}
    play(tmp_path, TIMED, rounds=10, round=sizes | {"computes": "selected"})
    found = measure(RunFolder(tmp_path, {}, 0), None)
    assert (found["bits_up"], found["bits_down"]) == (400e6, 400e6)


AVERAGES = {
    "we_percent": {"own": (62.42, 47.23, 50.43), "kpfl": (64.55, 59.69, 57.07)},
    "id_points": {"own": (0.45, 1.57, 1.16), "kpfl": (np.nan, 0.45, 0.45)},
    "idp_points": {"own": (np.nan, 18.59, 17.53), "kpfl": (np.nan, 5.16, 7.91)},
}
"""Column AVG of table 1 of DPFL's paper, without and with KPFL."""


@pytest.mark.parametrize("server", ["own", "kpfl"])
@pytest.mark.parametrize("measure", AVERAGES)
def test_the_numbers_of_dpfls_table_1_have_the_averages_that_the_paper_prints(measure, server):
    published = of("dpfl")["PUBLISHED"]
    columns = [numbers[measure] for (_, by, clients), numbers in published.items() if (by, clients) == (server, 10)]
    assert len(columns) == 9
    assert np.mean(columns, axis=0) == pytest.approx(AVERAGES[measure][server], abs=0.005001, nan_ok=True)


def test_we_idp_and_id_stand_beside_dpfls_where_it_has_the_algorithm(tmp_path, study_writer, capsys):
    """FedAvg and FedDF, three seeds, always there and half of the rounds; 2, 3 and 4 points are lost."""
    laws = {"static": {"model": "always"}, "random": {"model": "bernoulli", "probability": 0.5}}
    runs, configs = [], []
    for law, availability in laws.items():
        for algorithm in ("fedavg", "feddf"):
            for seed in range(3):
                lost = (2 + seed) * (law == "random")
                knobs = {"algorithm": algorithm, "participation": law, "skew": "heavy", "clients": 10}
                runs.append((knobs, seed, "finished", [(90 - lost) / 100] * 12))
                configs.append({"availability": availability, "algorithm": {"name": algorithm}})
    runs.append(({"algorithm": "moon", "participation": "random", "skew": "heavy", "clients": 10}, 0, "failed", []))
    study = study_writer(tmp_path / "study", runs, target=None, configs=[*configs, None])
    table = of("dpfl")["beside_the_papers"](study).set_index(["participation", "algorithm"])
    assert len(table) == 4
    random = table.loc[("random", "fedavg")]
    assert random[["we_percent", "idp_points", "id_points"]].tolist() == pytest.approx([87, 3, 0], abs=1e-9)
    assert random[["idp_points_low", "idp_points_high"]].tolist() == pytest.approx([3 - HALF, 3 + HALF], abs=1e-3)
    assert random[["we_percent_paper", "idp_points_paper", "id_points_paper"]].tolist() == [46.01, 20.87, 1.58]
    assert table.loc[("static", "fedavg"), "we_percent_paper"] == 63.02
    assert table.loc[("static", "fedavg"), ["idp_points", "idp_points_paper"]].isna().all()
    assert table.loc["random"].loc["feddf", [f"{measure}_paper" for measure in AVERAGES]].isna().all()
    of("dpfl")["report_beside"](study)
    told = capsys.readouterr().out
    assert "Under dynamic participation (skew heavy, clients 10)" in told
    (line,) = [line for line in told.splitlines() if line.split()[:2] == ["random", "fedavg"]]
    assert " ".join(line.split()[2:]) == "87.00 ± 2.48 46.01 +3.00 ± 2.48 +20.87 0.00 ± 0.00 1.58"


@pytest.mark.parametrize(
    ("scenario", "knobs", "paper"),
    [
        ("dpfl", {"skew": "iid"}, {"we_percent": np.nan}),
        ("dpfl", {"clients": 30}, {"we_percent": np.nan}),
        ("dpfl", {"participation": "x"}, {"we_percent": np.nan}),
        ("dpfl", {"algorithm": "moon", "participation": "markov", "server": "own"}, {"we_percent": 52.44}),
        ("dpfl", {"algorithm": "moon", "participation": "markov", "server": "mifa"}, {"we_percent": 59.71}),
        ("dpfl", {"algorithm": "moon", "participation": "markov", "server": "kpfl-first"}, {"we_percent": 57.55}),
        ("dpfl", {"algorithm": "moon", "participation": "markov", "server": "kpfl"}, {"we_percent": 60.5}),
        ("fedstg", {"dataset": "cifar100", "method": "feddyn"}, {"final_percent": 54.86, "peak_round": 44}),
    ],
)
def test_a_setting_has_the_numbers_of_its_paper_or_none(tmp_path, study_writer, scenario, knobs, paper):
    usual = {
        "dpfl": {"algorithm": "fedavg", "participation": "random", "skew": "heavy", "clients": 10},
        "fedstg": {"mode": "paper", "pool": "shared"},
    }
    study = study_writer(tmp_path / "study", [(usual[scenario] | knobs, 0, "finished", [0.5] * 6)], target=None)
    beside = {"dpfl": "beside_the_papers", "fedstg": "beside_the_paper"}[scenario]
    (row,) = of(scenario)[beside](study).to_dict("records")
    assert {name: row[f"{name}_paper"] for name in paper} == pytest.approx(paper, nan_ok=True)


@pytest.fixture
def fedstg(tmp_path, study_writer):
    """FedStg with three seeds, and FedAvg with one, of four rounds each; a failed run."""
    knobs = {"mode": "paper", "dataset": "digits", "pool": "shared"}
    runs = [
        (knobs | {"method": "fedstg"}, seed, "finished", [0.5, 0.7 + seed / 100, 0.6, 0.6 + seed / 100])
        for seed in range(3)
    ]
    runs.append((knobs | {"method": "fedavg"}, 0, "finished", [0.5, 0.6, 0.7, 0.8]))
    runs.append((knobs | {"method": "feddyn"}, 0, "failed", []))
    return study_writer(tmp_path / "study", runs, target=None)


def test_accuracies_and_costs_of_fedstg_are_means_with_intervals_beside_the_papers(fedstg, capsys):
    whole = of("fedstg")["beside_the_paper"](fedstg)
    table = whole.set_index("method")
    assert list(table.index) == ["fedstg", "fedavg"]
    found = table.loc["fedstg"]
    assert found["seeds"] == 3
    assert found[["final_percent", "final_percent_low"]].tolist() == pytest.approx([61, 61 - HALF], abs=1e-3)
    assert found[["peak_percent", "peak_percent_high"]].tolist() == pytest.approx([71, 71 + HALF], abs=1e-3)
    assert (found["peak_round"], found["merged"], found["trained"], found["uploads"]) == (2, 4, 16, 8)
    assert (found["gbit_up"], found["kj"]) == pytest.approx((4 * 3.5e6 / 1e9, 0.024))
    one = table.loc["fedavg"]
    assert (one["final_percent"], one["final_percent_paper"]) == (pytest.approx(80), 82.60)
    assert np.isnan(one[["final_percent_low", "peak_percent_paper", "peak_round_paper"]].astype(float)).all()
    of("fedstg")["show_beside"](whole)
    told = capsys.readouterr().out
    assert "Accuracy beside the paper's (mode paper, dataset digits, pool shared)" in " ".join(told.split())
    accuracy, cost = [line.split() for line in told.splitlines() if line.startswith("fedstg ")]
    assert accuracy == ["fedstg", "61.00", "±", "2.48", "87.53", "71.00", "±", "2.48", "87.53", "2", "±", "0", "100"]
    assert cost == ["fedstg", "4.0", "16", "8", "0.014", "0", "0.024"]


def test_bits_sent_to_and_by_devices_whose_work_the_end_cut_count(fedstg):
    run = fedstg / "run3"
    down = pd.DataFrame({"round": [5], "name": ["bits_down"], "key": [""], "value": [2e9]}).astype({"round": "int32"})
    edit_table(run, "metrics", lambda rows: pd.concat([rows, down]))
    cut = {"round": np.int32(5), "outcome": "cancelled", "bits": 1e9}
    edit_table(run, "activities", lambda rows: pd.concat([rows, rows.tail(1).assign(**cut)]))
    found = of("fedstg")["beside_the_paper"](fedstg).set_index("method").loc["fedavg"]
    assert found[["gbit_up", "gbit_down"]].tolist() == pytest.approx([1 + 4 * 3.5e6 / 1e9, 2])


def test_speed_ups_points_and_fairness_stand_beside_feddances(tmp_path, study_writer):
    """Random's updates are of four devices in turn, the others' of one."""
    runs = [({"trace": "week", "policy": policy}, seed, "finished", [value + seed / 100 for value in accuracies])
            for policy, accuracies in WEEK.items() for seed in (0, 1)]  # fmt: skip
    study = study_writer(tmp_path / "study", runs, target=0.5, start=0.1)
    for number in range(len(runs)):
        four = {"device": range(4), "frame": 1, "station": 0, "class_counts": [[1]] * 4}
        edit_table(study / f"run{number}", "devices", lambda rows, four=four: rows.reindex(range(4)).assign(**four))
    for number in (0, 1):
        edit_table(study / f"run{number}", "updates", lambda rows: rows.assign(device=rows["round"] % 4))
    table = of("feddance")["beside_the_paper"](study).set_index("policy")
    assert table["rounds"].tolist() == pytest.approx([3, 2, np.nan], nan_ok=True)
    assert table["rounds_bound"].tolist() == pytest.approx([np.nan, np.nan, 4], nan_ok=True)
    assert table["never"].to_dict() == {"random": 0, "feddance": 0, "fedcs": 2}
    assert table["speed_up"].tolist() == pytest.approx([1, 3 / 2, np.nan], nan_ok=True)
    assert table["accuracy"].tolist() == pytest.approx([50.5, 78.0, 28.0])
    assert table["sd"].tolist() == pytest.approx([np.std([0, 1], ddof=1)] * 3)
    assert table["points"].tolist() == pytest.approx([0, 27.5, -22.5])
    assert table["devices"].tolist() == pytest.approx([4, 1, 1])
    # Table 2 of the paper says 1.39, 1.20, 1.24 and 1.16.
    assert table["paper_speed_up"].to_dict() == {"random": "", "feddance": "1.39 1.20 1.24 1.16", "fedcs": ""}
    assert table["paper_points"]["feddance"] == "+1.7 +3.6 +2.0 +1.6"
