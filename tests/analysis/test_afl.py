"""A study of AFL beside the numbers of its paper, on made-up runs."""

import numpy as np
import pandas as pd
import pytest

from edgesim import simulation
from edgesim.analysis.afl import PUBLISHED, beside_afl
from edgesim.analysis.runs import Run
from edgesim.analysis.summary import measure
from edgesim.config_file import parse
from edgesim.terminal.show_afl import print_beside_afl


def test_savings_of_the_published_rounds_and_bytes():
    """T10."""
    fedavg, afl = PUBLISHED["high", "fedavg-50"], PUBLISHED["high", "afl"]
    assert 1 - afl["rounds_to_own_peak"] / fedavg["rounds_to_own_peak"] == pytest.approx(0.228571, abs=1e-6)
    fedavg, afl = PUBLISHED["iid", "fedavg-50"], PUBLISHED["iid", "afl"]
    assert 1 - afl["gigabytes"] / fedavg["gigabytes"] == pytest.approx(0.283784, abs=1e-6)


def test_bytes_are_those_of_both_directions(tmp_path):
    """T9: 1 MB, 5 devices, 10 rounds: 100 MB."""
    settings = {"admission": "count", "count": 5, "payload_bits": 8e6, "allocator": "equal_share", "tmax_s": 600.0}
    config = {"rounds": 10, "round": settings | {"computes": "selected"}, "learning": {"training": "none"}}
    simulation.run(parse(config, "T9"), tmp_path / "run")
    found = measure(Run(tmp_path / "run", {}, 0), None)
    assert (found["bits_up"], found["bits_down"]) == (400e6, 400e6)
    assert (found["bits_up"] + found["bits_down"]) / 8 == 100e6


@pytest.fixture
def study(tmp_path, study_writer):
    """Two skews, three seeds; AFL is 1, 2 and 3 points behind FedAvg, and under high skew level with it."""
    runs = []
    for skew in ("iid", "high"):
        for method in ("fedavg-50", "afl"):
            for seed in range(3):
                behind = (1 + seed) / 100 * (skew == "iid" and method == "afl")
                runs.append(({"skew": skew, "method": method}, seed, "finished", [0.6] + [0.9 - behind] * 6))
    study_writer(tmp_path / "study", runs)
    for folder in (tmp_path / "study").glob("run*"):
        rounds = pd.read_parquet(folder / "rounds.parquet")
        rounds.assign(bits_down=4.5e6).to_parquet(folder / "rounds.parquet")
    return tmp_path / "study"


def test_methods_stand_beside_the_paper_and_are_compared_under_the_same_skew(study, capsys):
    table = beside_afl(study, "fedavg-50")
    by = table.set_index(["skew", "method"])
    iid, high, reference = by.loc[("iid", "afl")], by.loc[("high", "afl")], by.loc[("iid", "fedavg-50")]
    assert iid["final_accuracy"] == pytest.approx(0.88)
    assert iid["final_accuracy_difference"] == pytest.approx(-0.02)
    # t(0.975, 2) / sqrt(3) = 2.484 for a standard deviation of a point.
    ends = iid[["final_accuracy_difference_low", "final_accuracy_difference_high"]].tolist()
    assert ends == pytest.approx([-0.02 - 0.02484, -0.02 + 0.02484], abs=1e-5)
    assert high["final_accuracy_difference"] == 0
    assert np.isnan(reference["final_accuracy_difference"])
    assert (iid["final_accuracy_paper"], high["rounds_to_own_peak_paper"]) == (0.918, 162)
    # Seven rounds of 7e6 bits up, late ones among them, or 4.5e6 down.
    assert iid["gigabytes"] == pytest.approx(7 * (3.5e6 + 4.5e6) / 8e9)
    assert (iid["reached"], iid["rounds_to_target"]) == (3, 2)
    print_beside_afl(table, "fedavg-50")
    said = capsys.readouterr().out
    assert "-0.020 ± 0.025" in said
    assert "0.918" in said
