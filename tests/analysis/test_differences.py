import json

import numpy as np
import pytest

from edgesim.analysis.differences import differences, summarise_differences
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
    assert [one.values["seconds_to_target"] for one in found] == pytest.approx([2.0, 4.0, 2.0])
    assert [one.values["scheduled"] for one in found] == [0.0, 0.0, 0.0]


def test_the_table_has_the_mean_with_its_t_interval_over_pairs(study):
    (row,) = summarise_differences(differences(study, "delay_knowledge", "known")).to_dict("records")
    assert {name: row[name] for name in PLANNED} == PLANNED
    assert (row["pairs"], row["never"]) == (3, 1)
    mean, half = 8 / 3, 4.30265273 * np.std([2.0, 4.0, 2.0], ddof=1) / np.sqrt(3)
    assert row["seconds_to_target"] == pytest.approx(mean)
    assert row["seconds_to_target_low"] == pytest.approx(mean - half)
    assert row["seconds_to_target_high"] == pytest.approx(mean + half)


def test_without_a_run_of_the_reference_there_are_no_differences(study):
    assert differences(study, "delay_knowledge", "reported") == []


def test_the_figure_has_a_panel_per_measure_and_a_bar_for_every_deadline(study):
    plan = json.loads((study / "study.json").read_text())
    for run in plan["runs"]:
        if run["seed"] == 2:
            run["knobs"]["tmax_s"] = 4.0
    (study / "study.json").write_text(json.dumps(plan))
    found = differences(study, "delay_knowledge", "known")
    figure = draw_differences(found, "known")
    assert [axes.get_title() for axes in figure.axes][:2] == ["(a) scheduled", "(b) arrived"]
    seconds = next(axes for axes in figure.axes if "time to the target" in axes.get_title())
    means = [line.get_xdata()[0] for line in seconds.get_lines() if line.get_marker() != "None"]
    assert means == pytest.approx([3.0, 2.0])
    assert seconds.get_xlabel() == "difference (s)"
    assert figure.axes[0].get_ylabel() == "against known"
