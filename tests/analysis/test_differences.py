import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from edgesim.analysis.differences import differences, differences_table, summarise_differences
from edgesim.plots.differences import draw_differences

KNOWN = {"policy": "random", "tmax_s": 2.0, "delay_knowledge": "known"}
PLANNED = KNOWN | {"delay_knowledge": "planned", "plan_quantile": 0.9}


@pytest.fixture
def study(tmp_path, study_writer):
    # Rounds to 0.75, of 2 s each: known 1, 2, 3; planned 2, 4, and never within 3; one seed of planned has no partner.
    ways = [(KNOWN, ([0.8], [0.6, 0.8], [0.6, 0.6, 0.8])), (PLANNED, ([0.6, 0.8], [0.6] * 3 + [0.8], [0.6] * 3))]
    runs = [(knobs, seed, "finished", path) for knobs, paths in ways for seed, path in enumerate(paths)]
    runs += [(PLANNED, 9, "finished", [0.8]), (KNOWN, 8, "failed", [])]
    runs += [(PLANNED | {"tmax_s": 3.0}, 0, "finished", [0.8])]
    return study_writer(tmp_path / "study", runs)


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


def test_without_a_run_of_the_reference_there_are_no_differences(study):
    assert differences(study, "delay_knowledge", "reported") == []


def test_the_figure_has_a_panel_per_measure_and_a_bar_for_every_deadline(study):
    plan = json.loads((study / "study.json").read_text())
    for run in plan["runs"]:
        if run["seed"] == 1:
            run["knobs"]["tmax_s"] = 4.0
    (study / "study.json").write_text(json.dumps(plan))
    found = differences(study, "delay_knowledge", "known")
    figure = draw_differences(found, "known")
    assert [axes.get_title() for axes in figure.axes][:2] == ["(a) scheduled", "(b) arrived"]
    seconds = next(axes for axes in figure.axes if "time to the target" in axes.get_title())
    means = [line.get_xdata()[0] for line in seconds.get_lines() if line.get_marker() != "None"]
    assert means == pytest.approx([2.0, 4.0])
    assert seconds.get_xlabel() == "difference (s)\n1 of 3 pairs left out:\nthe target was not reached"
    assert figure.axes[0].get_ylabel() == "against known"


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
