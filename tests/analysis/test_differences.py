import json
import shutil
from functools import cache

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats

from edgesim.analysis.differences import MEASURES, differences, differences_table, summarise_differences
from edgesim.plots.differences import draw_differences
from edgesim.terminal.show_differences import print_differences

KNOWN = {"policy": "random", "tmax_s": 2.0, "delay_knowledge": "known"}
PLANNED = KNOWN | {"delay_knowledge": "planned", "plan_quantile": 0.9}


@pytest.fixture(scope="module")
def written(tmp_path_factory, study_writer):
    """Studies that are written once, each by its function."""
    return cache(lambda write: write(tmp_path_factory.mktemp("written") / "study", study_writer))


@pytest.fixture
def study(tmp_path, written):
    """A study of its own, which a test may change."""
    return shutil.copytree(written(write_delay_study), tmp_path / "study")


def write_delay_study(folder, study_writer):
    # Rounds to 0.75, of 2 s each: known 1, 2, 3; planned 2, 4, and never within 3; one seed of planned has no partner.
    ways = [(KNOWN, ([0.8], [0.6, 0.8], [0.6, 0.6, 0.8])), (PLANNED, ([0.6, 0.8], [0.6] * 3 + [0.8], [0.6] * 3))]
    runs = [(knobs, seed, "finished", path) for knobs, paths in ways for seed, path in enumerate(paths)]
    runs += [(PLANNED, 9, "finished", [0.8]), (KNOWN, 8, "failed", [])]
    runs += [(PLANNED | {"tmax_s": 3.0}, 0, "finished", [0.8])]
    return study_writer(folder, runs)


def test_each_run_is_held_against_that_of_its_seed_which_shares_its_knobs(study):
    found = differences(study, "delay_knowledge", "known")
    assert [(one.run.knobs["plan_quantile"], one.run.seed) for one in found] == [(0.9, 0), (0.9, 1), (0.9, 2)]
    assert [one.values.get("seconds_to_target") for one in found] == [2.0, 4.0, None]
    assert [one.censored for one in found] == [False, False, True]
    assert [one.values["scheduled"] for one in found] == [0.0, 0.0, 0.0]


def test_the_table_has_the_mean_with_its_t_interval_over_pairs(study):
    (row,) = summarise_differences(differences(study, "delay_knowledge", "known")).to_dict("records")
    assert {name: row[name] for name in PLANNED} == PLANNED
    assert (row["pairs"], row["never"]) == (3, 1)
    half = 12.7062047362 * np.std([2.0, 4.0], ddof=1) / np.sqrt(2)
    assert row["seconds_to_target"] == pytest.approx(3)
    assert row["seconds_to_target_low"] == pytest.approx(3 - half)
    assert row["seconds_to_target_high"] == pytest.approx(3 + half)


def accuracies(rounds: int) -> list[float]:
    return [0.6] * (rounds - 1) + [0.8]


def test_p_values_are_those_of_the_paired_t_test_corrected_for_all_rows_of_their_column(tmp_path, study_writer):
    """Rounds by seed: Random 10 to 14; Oort far fewer, REFL the same give or take one, FedCS on one seed never."""
    rounds = {
        "random": [10, 11, 12, 13, 14],
        "oort": [4, 6, 5, 7, 9],
        "refl": [10, 12, 11, 13, 14],
        "fedcs": [12, 9, 15, 13, 16],
    }
    runs = [
        ({"policy": policy}, seed, "finished", accuracies(needed))
        for policy, of_seeds in rounds.items()
        for seed, needed in enumerate(of_seeds)
    ]
    runs[-1] = (*runs[-1][:3], [0.6] * 20)
    table = summarise_differences(differences(study_writer(tmp_path / "study", runs), "policy", "random"))
    table = table.set_index("policy")
    pairs = [rounds["oort"], rounds["refl"], rounds["fedcs"][:4]]
    expected = [stats.ttest_rel(mine, rounds["random"][: len(mine)]).pvalue for mine in pairs]
    assert table["rounds_to_target_p"].tolist() == pytest.approx(expected)
    by_hand = [3 * expected[0], max(2 * expected[2], expected[1]), 2 * expected[2]]
    assert expected[0] < expected[2] < expected[1]
    assert table["rounds_to_target_p_holm"].tolist() == pytest.approx(np.minimum(by_hand, 1))
    assert table["rounds_to_target_reading"].tolist() == ["fewer", "level", "not distinguishable"]
    assert table["never"].tolist() == [0, 0, 1]
    assert table.loc["fedcs", "rounds_to_target"] == pytest.approx(np.mean([2, -2, 3, 0]))
    assert table["final_accuracy_p"].notna().all()
    assert table["seconds_to_target_reading"].tolist() == ["sooner", "level", "not distinguishable"]


ALGORITHMS = {"fedavg": 60.0, "mifa": 63.0, "moon": 60.0}
"""Accuracy in % of static runs, in all rounds."""
LOST = {"fedavg": [6, 8, 10], "mifa": [4.5, 5.5, 6.5], "moon": [6, 7, 11]}
"""Points that Markov participation costs, by seed, in all rounds."""
DYNAMIC = {"model": "markov", "join_probability": 0.2, "leave_probability": 0.2}


@pytest.fixture
def participation(written):
    return written(write_participation)


def write_participation(folder, study_writer):
    """Static and Markov runs of three algorithms; accuracies are the same in all six rounds but for ID's zigzag."""
    runs, configs = [], []
    for name, static in ALGORITHMS.items():
        for setting, law in (("static", {"model": "always"}), ("markov", DYNAMIC)):
            for seed, lost in enumerate(LOST[name]):
                level = static - (lost if setting == "markov" else 0)
                swing = (seed + 1) * (name == "mifa" and setting == "markov")
                psi = [(level + swing * (-1) ** round) / 100 for round in range(6)]
                runs.append(({"setting": setting, "algorithm": name}, seed, "finished", psi))
                configs.append({"availability": law, "algorithm": {"name": name}})
    return study_writer(folder, runs, target=None, configs=configs)


def test_we_idp_and_id_are_compared_where_a_study_has_static_runs_beside_dynamic_ones(participation, study):
    found = differences(participation, "algorithm", "fedavg")
    values = {(*one.run.knobs.values(), one.run.seed): one.values for one in found}
    # WE of six rounds that alternate by +- s ends with five: - s + s - s + s - s, here from + s on in round 1.
    assert [values["markov", "mifa", seed]["we_percent"] for seed in range(3)] == pytest.approx(
        [3 + 6 - 4.5 - 1 / 5, 3 + 8 - 5.5 - 2 / 5, 3 + 10 - 6.5 - 3 / 5]
    )
    assert [values["markov", "mifa", seed]["idp_points"] for seed in range(3)] == pytest.approx([-1.5, -2.5, -3.5])
    # The last three rounds, - s, + s, - s about their line, the mean - s / 3: distances 2/3, 4/3 and 2/3 of s.
    assert [values["markov", "mifa", seed]["id_points"] for seed in range(3)] == pytest.approx([8 / 9, 16 / 9, 24 / 9])
    assert values["static", "mifa", 0]["we_percent"] == pytest.approx(3)
    assert "idp_points" not in values["static", "mifa", 0]
    assert not {"we_percent", "id_points"} & set(differences(study, "delay_knowledge", "known")[0].values)


def test_the_p_of_we_idp_and_id_are_corrected_for_all_comparisons_of_the_three(participation):
    table = summarise_differences(differences(participation, "algorithm", "fedavg"))
    rows = table.set_index(["setting", "algorithm"])
    names = ["we_percent", "idp_points", "id_points"]
    p = rows[[f"{name}_p" for name in names]].to_numpy().ravel()
    made = p[~np.isnan(p)]
    assert len(made) == 4 + 2 + 4
    ranked = np.sort(made)
    holm = np.minimum(np.maximum.accumulate(ranked * np.arange(10, 0, -1)), 1)
    corrected = rows[[f"{name}_p_holm" for name in names]].to_numpy().ravel()
    assert np.sort(corrected[~np.isnan(corrected)]) == pytest.approx(np.sort(holm))
    mifa = stats.ttest_1samp([-1.5, -2.5, -3.5], 0).pvalue
    assert rows.loc[("markov", "mifa"), "idp_points_p"] == pytest.approx(mifa)
    assert rows.loc[("markov", "mifa"), "idp_points_reading"] == "not distinguishable"
    assert rows.loc[("static", "moon"), "we_percent_reading"] == "level"
    # 0, 1 and -1 points: within a tenth of FedAvg's accuracy, but not within a point.
    assert rows.loc[("markov", "moon"), "we_percent_reading"] == "not distinguishable"


def test_a_point_of_we_or_idp_is_level_but_of_id_a_tenth(tmp_path, study_writer):
    """MOON is 0.5 points off FedAvg in all three, up to 0.1: ID of FedAvg is 1.6, of which a tenth is 0.16."""
    runs, configs = [], []
    for name, moved in (("fedavg", [0, 0, 0]), ("moon", [0.4, 0.6, 0.5])):
        for setting, law in (("static", {"model": "always"}), ("markov", DYNAMIC)):
            for seed, by in enumerate(moved):
                swing = 1.8 + by if setting == "markov" else 0
                psi = [(60 - by * (setting == "markov") + swing * (-1) ** round) / 100 for round in range(6)]
                runs.append(({"setting": setting, "algorithm": name}, seed, "finished", psi))
                configs.append({"availability": law, "algorithm": {"name": name}})
    folder = study_writer(tmp_path / "study", runs, target=None, configs=configs)
    row = summarise_differences(differences(folder, "algorithm", "fedavg")).set_index("setting").loc["markov"]
    assert (row["idp_points"], row["idp_points_reading"]) == (pytest.approx(0.5), "level")
    assert (row["we_percent"], row["we_percent_reading"]) == (pytest.approx(-0.6), "level")
    assert row["id_points"] == pytest.approx(8 / 9 * 0.5)
    assert row["id_points_reading"] == "not distinguishable"


def test_without_a_run_of_the_reference_there_are_no_differences(study):
    assert differences(study, "delay_knowledge", "reported") == []


def test_the_figure_has_a_panel_per_measure_that_differs_and_a_bar_for_every_deadline(study):
    plan = json.loads((study / "study.json").read_text())
    for run in plan["runs"]:
        if run["seed"] == 1:
            run["knobs"]["tmax_s"] = 4.0
    (study / "study.json").write_text(json.dumps(plan))
    found = differences(study, "delay_knowledge", "known")
    figure = draw_differences(found, "known")
    # As many devices are scheduled and as many updates arrive in all runs.
    assert [axes.get_title() for axes in figure.axes] == [
        "(a) rounds to the target",
        "(b) time to the target",
        "(c) energy to the target",
        "(d) final accuracy",
    ]
    seconds = next(axes for axes in figure.axes if "time to the target" in axes.get_title())
    means = [line.get_xdata()[0] for line in seconds.get_lines() if line.get_marker() != "None"]
    assert means == pytest.approx([2.0, 4.0])
    assert seconds.get_xlabel() == "difference (s)\n1 of 3 pairs left out:\nthe target was not reached"
    assert figure.axes[0].get_ylabel() == "against known"


def test_measures_in_which_no_pair_differs_are_named_below_the_table_instead(participation, capsys):
    table = summarise_differences(differences(participation, "algorithm", "fedavg"))
    print_differences(table, "fedavg", Console(width=200))
    printed = capsys.readouterr().out
    heading = next(line for line in printed.splitlines() if line.startswith("setting"))
    assert heading.split() == ["setting", "algorithm", "accuracy", "WE", "IDP", "ID"]
    assert "The same in all pairs: scheduled, arrived, missed." in printed
    assert "WE, IDP and ID (points) are corrected together; WE and IDP are level within a point." in printed
    # Of runs that are the same throughout, nothing is left out.
    same = table.assign(**{name: 0.0 for name in table if str(name).endswith(("_low", "_high")) or name in MEASURES})
    print_differences(same, "fedavg", Console(width=200))
    assert "scheduled" in capsys.readouterr().out.splitlines()[1]


@pytest.mark.parametrize("reference", ["known", "reported"])
def test_a_table_of_differences_that_lies_there_is_that_of_its_runs(study, reference):
    """Also one of no pairs at all, of which no file is written."""
    fresh = summarise_differences(differences(study, "delay_knowledge", reference))
    written = differences_table(study, "delay_knowledge", reference, write=True)
    read = differences_table(study, "delay_knowledge", reference)
    for table in (written, read):
        pd.testing.assert_frame_equal(table, fresh, check_dtype=False)
    assert (study / "differences-delay_knowledge.csv").exists() == (reference == "known")
    # A run that failed since is no partner any more.
    plan = json.loads((study / "study.json").read_text())
    plan["runs"][0]["status"] = "failed"
    (study / "study.json").write_text(json.dumps(plan))
    again = differences_table(study, "delay_knowledge", reference)
    assert again.empty if reference == "reported" else again["pairs"].tolist() == [2]
