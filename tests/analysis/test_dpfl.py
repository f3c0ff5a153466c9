"""A study of dynamic participation beside the tables of DPFL's paper: the numbers typed, and made-up runs."""

import runpy
from pathlib import Path

import numpy as np
import pytest

SCENARIO = runpy.run_path(str(Path(__file__).parents[2] / "scenarios/dpfl.py"))
LAWS, PUBLISHED, beside = (SCENARIO[name] for name in ("PAPERS_LAWS", "PUBLISHED", "beside_the_papers"))

AVERAGES = {
    "we_percent": {"own": (62.42, 47.23, 50.43), "kpfl": (64.55, 59.69, 57.07)},
    "id_points": {"own": (0.45, 1.57, 1.16), "kpfl": (np.nan, 0.45, 0.45)},
    "idp_points": {"own": (np.nan, 18.59, 17.53), "kpfl": (np.nan, 5.16, 7.91)},
}
"""Column AVG of the paper's table 1, without and with KPFL."""


@pytest.mark.parametrize("server", ["own", "kpfl"])
@pytest.mark.parametrize("measure", AVERAGES)
def test_the_numbers_of_table_1_have_the_averages_that_the_paper_prints(measure, server):
    columns = [of[measure] for (_, by, clients), of in PUBLISHED.items() if (by, clients) == (server, 10)]
    assert len(columns) == 9
    assert np.mean(columns, axis=0) == pytest.approx(AVERAGES[measure][server], abs=0.005001, nan_ok=True)


@pytest.fixture
def study(tmp_path, study_writer):
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
    return study_writer(tmp_path / "study", runs, target=None, configs=[*configs, None])


def test_we_idp_and_id_stand_beside_the_papers_where_it_has_the_algorithm(study):
    table = beside(study).set_index(["participation", "algorithm"])
    assert len(table) == 4
    random = table.loc[("random", "fedavg")]
    assert random[["we_percent", "idp_points", "id_points"]].tolist() == pytest.approx([87, 3, 0], abs=1e-9)
    # t(0.975, 2) / sqrt(3) = 2.484 for a standard deviation of 1.
    assert random[["idp_points_low", "idp_points_high"]].tolist() == pytest.approx([3 - 2.484, 3 + 2.484], abs=1e-3)
    assert random[["we_percent_paper", "idp_points_paper", "id_points_paper"]].tolist() == [46.01, 20.87, 1.58]
    assert table.loc[("static", "fedavg"), "we_percent_paper"] == 63.02
    assert table.loc[("static", "fedavg"), ["idp_points", "idp_points_paper"]].isna().all()
    assert table.loc["random"].loc["feddf", [f"{measure}_paper" for measure in AVERAGES]].isna().all()


@pytest.mark.parametrize(
    ("knobs", "paper"),
    [
        ({"skew": "iid"}, np.nan),
        ({"clients": 30}, np.nan),
        ({"participation": "x"}, np.nan),
        ({"algorithm": "moon", "participation": "markov", "server": "mifa"}, 59.71),
        ({"algorithm": "moon", "participation": "markov", "server": "kpfl-first"}, 57.55),
    ],
)
def test_a_setting_that_the_paper_does_not_have_stands_alone(tmp_path, study_writer, capsys, knobs, paper):
    knobs = {"algorithm": "fedavg", "participation": "random", "skew": "heavy", "clients": 10} | knobs
    study = study_writer(tmp_path / "study", [(knobs, 0, "finished", [0.5] * 6)], target=None)
    assert beside(study)["we_percent_paper"].tolist() == pytest.approx([paper], nan_ok=True)
    SCENARIO["report_beside"](study)
    assert ("paper" in capsys.readouterr().out) == (paper == paper)


def test_the_printed_table_has_a_section_for_each_law(study, capsys):
    SCENARIO["report_beside"](study)
    told = capsys.readouterr().out
    assert "Under dynamic participation (skew heavy, clients 10)" in told
    (line,) = [line for line in told.splitlines() if line.split()[:2] == ["random", "fedavg"]]
    assert " ".join(line.split()[2:]) == "87.00 ± 2.48 46.01 +3.00 ± 2.48 +20.87 0.00 ± 0.00 1.58"
    assert [line.split()[0] for line in told.splitlines() if line.split()[1:2] == ["feddf"]] == list(LAWS[:2])
