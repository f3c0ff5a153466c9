"""Runs and studies compared by a knob: what is paired, what is refused, and in which words."""

import json
from contextlib import nullcontext

import numpy as np
import pytest
from edited_runs import edit_json
from scipy import stats

from edgesim.analysis.compare import compare
from edgesim.analysis.runs import read_study
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import leased

ROUNDS = {"random": [10, 11, 12, 13, 14], "fedteddi": [4, 6, 5, 7, 9], "oort": [10, 12, 11, 13, 14]}


def course(rounds: int) -> list[float]:
    return [0.6] * (rounds - 1) + [0.8]


def study_of(folder, study_writer, rounds=ROUNDS, **knobs):
    lr = {"learning": {"lr": knobs.get("lr", 0.1)}}
    configs = [{"selection": {"policy": policy}, **lr} for policy, of in rounds.items() for _ in of]
    paths = {policy: [course(needed) for needed in of] for policy, of in rounds.items()}
    return study_writer(folder, paths, knobs=knobs, configs=configs)


@pytest.fixture(scope="module")
def study(tmp_path_factory, study_writer):
    """Rounds to the target of three policies on five seeds; no test changes it."""
    return study_of(tmp_path_factory.mktemp("compared") / "study", study_writer)


def test_policies_are_compared_with_the_studys_reference_and_other_knobs_each_with_each(study):
    table = compare([study], ["rounds_to_target"], "policy").table
    assert table[["choice", "against"]].to_numpy().tolist() == [["fedteddi", "random"], ["oort", "random"]]
    p = [stats.ttest_rel(ROUNDS[name], ROUNDS["random"]).pvalue for name in ("fedteddi", "oort")]
    assert table["p"].tolist() == pytest.approx(p)
    assert table["p_holm"].tolist() == pytest.approx([2 * p[0], p[1]])
    asked = compare([study], ["rounds_to_target"], "policy", "oort").table
    assert asked["against"].tolist() == ["oort", "oort"]
    assert asked["difference"].tolist() == pytest.approx([0.0, -5.8])


def test_run_folders_are_compared_as_their_study_is(study):
    folders = [run.folder for run in read_study(study).finished]
    from_study = compare([study], ["rounds_to_target"], "policy", "random").table
    from_runs = compare(folders, ["rounds_to_target"], "policy", "random", target=0.75).table
    assert from_runs["difference"].tolist() == from_study["difference"].tolist()
    assert from_runs["p_holm"].tolist() == from_study["p_holm"].tolist()
    every = compare(folders, ["rounds_to_target"], "policy", target=0.75).table
    assert len(every) == 3


def test_two_studies_are_compared_by_what_they_differ_in(tmp_path, study_writer):
    slow = study_of(tmp_path / "slow", study_writer, {"random": [10, 11, 13]}, lr=0.1)
    fast = study_of(tmp_path / "fast", study_writer, {"random": [5, 6, 7]}, lr=0.2)
    (row,) = compare([slow, fast], ["rounds_to_target"], "lr").table.to_dict("records")
    assert (row["choice"], row["against"], row["difference"]) == ("0.2", "0.1", pytest.approx(-16 / 3))


def test_places_are_compared_separately_and_the_analysis_of_variance_has_both_factors(tmp_path, study_writer):
    runs = []
    for policy, tmax_s, rounds in (
        ("random", 1.0, [9, 10, 12]),
        ("fedteddi", 1.0, [5, 6, 7]),
        ("random", 2.0, [8, 9, 9]),
        ("fedteddi", 2.0, [7, 6, 9]),
    ):
        runs += [({"policy": policy, "tmax_s": tmax_s}, seed, "finished", course(n)) for seed, n in enumerate(rounds)]
    made = compare(
        [study_writer(tmp_path / "s", runs)], ["rounds_to_target", "final_accuracy"], "policy", within=["tmax_s"]
    )
    assert made.table["difference"].tolist()[:2] == pytest.approx([-13 / 3, -4 / 3])
    assert made.variances["rounds_to_target"]["source"].tolist() == ["policy", "tmax_s", "policy x tmax_s", "residual"]
    assert made.variances["rounds_to_target"]["df"].tolist() == [1, 1, 1, 8]
    # Every run's last five tests have the same mean.
    assert "final_accuracy" not in made.variances
    assert "do not differ" in made.notes[0]


def refused(*arguments, **options) -> str:
    with pytest.raises(EdgesimError) as caught:
        compare(*arguments, **options)
    return str(caught.value)


def test_a_measure_that_some_runs_lack_is_refused_with_their_names(tmp_path, study_writer):
    untested = [[None, None]] * 2
    partial = study_writer(tmp_path / "partial", {"random": [[0.8, 0.9]] * 2, "oort": untested})
    told = refused([partial], ["final_accuracy"], "policy")
    none = study_writer(tmp_path / "none", {"random": untested, "oort": untested}, start=None)
    said = "metric final_accuracy: no run has it (no model was tested)"
    assert refused([none], ["final_accuracy"], "policy").startswith(said)
    assert told == f"metric final_accuracy: null in 2 of 4 runs (no model was tested): {partial}/run2, {partial}/run3"


def test_seeds_that_are_missing_are_named(tmp_path, study_writer):
    lacking = study_of(tmp_path / "lacking", study_writer, {"random": [10, 11, 12, 13], "fedteddi": [4, 6]})
    told = refused([lacking], ["rounds_to_target"], "policy")
    assert told == "policy = fedteddi lacks seeds 2, 3, which policy = random has; run what is missing"
    runs = json.loads((lacking / "plan.json").read_text())["runs"]
    # Seed 2 of random and 1 of fedteddi.
    edit_json(lacking / "plan.json", runs=[runs[2], runs[5]])
    assert "have no seed in common (1 against 2)" in refused([lacking], ["rounds_to_target"], "policy")
    one = study_of(tmp_path / "one", study_writer, {"random": [10], "fedteddi": [4]})
    assert "have one seed in common (0); expected two or more" in refused([one], ["rounds_to_target"], "policy")


def test_studies_that_differ_in_more_than_what_is_compared_are_refused_by_name(tmp_path, study_writer):
    some = study_of(tmp_path / "some", study_writer, {"random": [10, 11]}, lr=0.1)
    other = study_of(tmp_path / "other", study_writer, {"oort": [5, 6]}, lr=0.2)
    told = refused([some, other], ["rounds_to_target"], "policy")
    assert told.startswith(
        "the runs are of different worlds: no two to compare differ in policy alone, but in lr (0.1,"
    )
    both = study_of(tmp_path / "both", study_writer, {"random": [10, 11], "oort": [5, 6]}, lr=0.2)
    told = refused([some, both], ["rounds_to_target"], "policy")
    end = "lr (0.1, 0.2); give lr to compare at equal values"
    assert told == f"within: the runs differ in more than policy: {end}"
    assert "no two runs differ in it alone" in refused([some, other], ["rounds_to_target"], "policy", within=["lr"])


def test_what_is_given_twice_or_lacks_a_target_is_refused(study):
    folders = [run.folder for run in read_study(study).finished]
    assert "by policy: all runs have policy = random" in refused(folders[:5], ["arrived"], "policy")
    assert "is given more than once" in refused([study, study], ["arrived"], "policy")
    assert "needs a target accuracy" in refused(folders, ["rounds_to_target"], "policy")
    assert "have the same config and seed" in refused([study, folders[0]], ["arrived"], "policy")


RESUME = "; resume it with `edgesim resume FOLDER`, or leave it out"


@pytest.mark.parametrize(
    ("told", "is_held", "said"),
    [
        ({"status": "interrupted"}, False, f"was stopped{RESUME}"),
        ({"status": "running"}, False, f"is lost (its process is gone){RESUME}"),
        ({"status": "running"}, True, "is running; wait for its end, or leave it out"),
        ({"status": "failed", "reason": "no\nin round 3"}, False, "is failed (no); run it again, or leave it out"),
    ],
)
def test_an_unfinished_run_is_refused_with_what_became_of_it(tmp_path, run_writer, told, is_held, said):
    folders = [run_writer(tmp_path / f"run{seed}", [0.6], seed=seed) for seed in range(2)]
    edit_json(folders[1] / "run.json", **told)
    with leased(folders[1]) if is_held else nullcontext():
        assert refused(folders, ["arrived"], "policy") == f"{folders[1]}: {said.replace('FOLDER', str(folders[1]))}"


def test_measures_of_tables_and_of_a_runs_own_scale_are_found(study):
    made = compare([study], ["rounds_to_own_peak", "energy_j", "best_accuracy"], "policy")
    energy = made.table[(made.table["measure"] == "energy_j") & (made.table["choice"] == "fedteddi")].iloc[0]
    # Six joules a round.
    assert energy["difference"] == pytest.approx(6 * np.mean(np.subtract(ROUNDS["fedteddi"], ROUNDS["random"])))
    peak = made.table[made.table["measure"] == "rounds_to_own_peak"]
    assert peak["difference"].tolist() == pytest.approx([-5.8, 0.0])


def equal_accuracies(folder, study_writer, images):
    """Three seeds in each of which one policy's final accuracy is 0.002 above the other's."""
    study_writer(folder, {"random": [[0.8] * 5] * 3, "fedteddi": [[0.802] * 5] * 3})
    for run in read_study(folder).finished if images else []:
        edit_json(run.folder / "run.json", test_images=images)
    return folder


def test_equal_differences_of_accuracies_of_unknown_step_are_never_equivalent(tmp_path, study_writer):
    (row,) = compare([equal_accuracies(tmp_path / "s", study_writer, 0)], ["final_accuracy"], "policy").table.to_dict(
        "records"
    )
    assert (row["low"], row["reading"]) == (row["high"], "inconclusive")


def test_accuracies_are_shares_of_the_test_images_and_final_ones_of_five_tests(tmp_path, study_writer):
    folder = equal_accuracies(tmp_path / "s", study_writer, 100)
    made = compare([folder], ["final_accuracy", "best_accuracy"], "policy")
    assert [one.sides.steps for one in made.found] == [(1 / 500, 1 / 500), (1 / 100, 1 / 100)]
    assert made.table["low"][0] < 0.002 < made.table["high"][0]
    assert made.table["reading"][0] == "equivalent"
