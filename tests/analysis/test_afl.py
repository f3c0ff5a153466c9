"""A study of AFL beside the numbers of its paper, on made-up runs."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

import edgesim
from edgesim.analysis.measures import measure
from edgesim.analysis.runs import RunFolder
from edgesim.config_file import parse
from edgesim.simulation import composition as simulation

SCENARIO = runpy.run_path(str(Path(__file__).parents[2] / "scenarios/afl.py"))


def beside(folder):
    """Means, and differences from the reference, of a study."""
    return SCENARIO["beside_the_paper"](edgesim.StudyResult(folder), "fedavg-50")


def test_bytes_are_those_of_both_directions(tmp_path):
    """T9: 1 MB, 5 devices, 10 rounds: 100 MB."""
    settings = {"admission": "count", "count": 5, "payload_bits": 8e6, "allocator": "equal_share", "tmax_s": 600.0}
    config = {
        "rounds": 10,
        "round": settings | {"computes": "selected"},
        "learning": {"training": "none", "pretrain": True},
        "data": {"partition": "fedteddi"},
    }
    simulation.run(parse(config, "T9"), tmp_path / "run")
    found = measure(RunFolder(tmp_path / "run", {}, 0), None)
    assert (found["bits_up"], found["bits_down"]) == (400e6, 400e6)
    assert (found["bits_up"] + found["bits_down"]) / 8 == 100e6


def with_bits_down(study):
    for path in study.glob("run*/rounds.parquet"):
        pd.read_parquet(path).assign(bits_down=4.5e6).to_parquet(path)
    return study


@pytest.fixture
def study(tmp_path, study_writer):
    """Two skews, three seeds; AFL is 1, 2 and 3 points behind FedAvg, and under high skew level with it."""
    runs = []
    for skew in ("iid", "high"):
        for method in ("fedavg-50", "afl"):
            for seed in range(3):
                behind = (1 + seed) / 100 * (skew == "iid" and method == "afl")
                runs.append(({"skew": skew, "method": method}, seed, "finished", [0.6] + [0.9 - behind] * 6))
    return with_bits_down(study_writer(tmp_path / "study", runs))


def test_methods_stand_beside_the_paper_and_are_compared_under_the_same_skew(study, capsys):
    means, differences = found = beside(study)
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


def test_all_comparisons_of_the_table_are_corrected_together(tmp_path, study_writer):
    """Two measures in which pairs differ, accuracy and the rounds to the target: each p counts twice."""
    runs = []
    for method, reached in (("fedavg-50", [5, 6, 8, 9]), ("afl", [3, 5, 5, 4])):
        for seed, rounds in enumerate(reached):
            best = 0.9 + 0.01 * seed * (method == "afl") + 0.001 * rounds
            runs.append(({"skew": "iid", "method": method}, seed, "finished", [0.6] * (rounds - 1) + [best] * 20))
    _, differences = beside(with_bits_down(study_writer(tmp_path / "study", runs)))
    tested = differences[differences["difference"] != 0]
    assert set(tested["measure"]) > {"final_accuracy", "rounds_to_target"}
    assert tested["p_holm"].min() == pytest.approx(len(tested) * tested["p"].min())


def test_a_run_that_never_reached_the_target_is_compared_up_to_its_last_test(tmp_path, study_writer, capsys):
    runs = []
    for method in ("fedavg-50", "afl"):
        for seed in range(6):
            gets_there = method == "fedavg-50" or seed
            path = [0.6, 0.6, 0.8 if gets_there else 0.7] if method == "afl" else [0.6, 0.8, 0.8]
            runs.append(({"skew": "iid", "method": method}, seed, "finished", path))
    means, differences = found = beside(with_bits_down(study_writer(tmp_path / "study", runs)))
    (afl,) = means[means["method"] == "afl"].to_dict("records")
    assert (afl["not_reached"], afl["rounds_to_target"], afl["rounds_to_target_bound"]) == (1, 3, 3)
    (row,) = differences[differences["measure"] == "rounds_to_target"].to_dict("records")
    assert (row["pairs"], row["never"], row["tau"], row["test"]) == (6, 1, 3, "paired t of logarithms")
    # In round 3 each, one of them later, against round 2: of all pairs as of one, since 3 is the end.
    assert row["ratio"] == pytest.approx(3 / 2)
    SCENARIO["show_beside"](*found, "fedavg-50")
    said = capsys.readouterr().out
    assert "> 3.0 (5 of 6)" in said
    assert "x1.5 (to 3)" in said
