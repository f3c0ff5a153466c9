import json
import math
import shutil
from pathlib import Path

import pandas as pd
import pytest
from refusals import in_one_line

from edgesim.analysis import stored_measures
from edgesim.analysis.runs import read_study, runs_of
from edgesim.analysis.stored_measures import StoredMeasures
from edgesim.analysis.summary import current_summary, footnotes, notes, summarise, write_summary
from edgesim.base.errors import EdgesimError

LOW, MIDDLE, HIGH = 0.6, 0.74, 0.8


def reaches_in(rounds: int, of: int = 10) -> list[float]:
    return [LOW] * (rounds - 1) + [HIGH] * (of - rounds + 1)


def knobs(policy: str, tmax_s: float = 0.8) -> dict[str, str | float]:
    return {"policy": policy, "tmax_s": tmax_s}


@pytest.fixture(scope="module")
def written(tmp_path_factory, study_writer):
    """Random takes 8, 6 and 10 rounds, FedTeddi 4 and 5 (and a failed seed), Fed-CBS never gets there."""
    runs = [(knobs("random"), seed, "finished", reaches_in(n)) for seed, n in enumerate((8, 6, 10))]
    runs += [(knobs("fedteddi"), seed, "finished", reaches_in(n)) for seed, n in enumerate((4, 5))]
    runs += [(knobs("fedteddi"), 2, "failed", [])]
    runs += [(knobs("fed-cbs"), seed, "finished", [MIDDLE] * 10) for seed in range(3)]
    runs += [(knobs("fedteddi", 1.2), 0, "running", [])]
    return study_writer(tmp_path_factory.mktemp("written") / "study", runs)


@pytest.fixture
def study(written, tmp_path):
    """A copy, which a test may change."""
    return Path(shutil.copytree(written, tmp_path / "study"))


@pytest.fixture(scope="module")
def summary(written):
    return summarise(written)


def row(summary: pd.DataFrame, policy: str, tmax_s: float = 0.8) -> pd.Series:
    return summary[(summary["policy"] == policy) & (summary["tmax_s"] == tmax_s)].iloc[0]


def test_each_combination_of_knobs_is_one_row_with_its_finished_and_left_out_runs(written, summary):
    assert summary[["policy", "tmax_s", "seeds", "left_out"]].to_numpy().tolist() == [
        ["random", 0.8, 3, 0],
        ["fedteddi", 0.8, 2, 1],
        ["fed-cbs", 0.8, 3, 0],
        ["fedteddi", 1.2, 0, 1],
    ]
    assert math.isnan(row(summary, "fedteddi", 1.2)["rounds_to_target"])
    notes = "\n".join(footnotes(summary, written))
    assert "3 of 8 runs never reached it" in notes
    assert "intervals leave them out, and a saving is given only where all runs of both policies reached it" in notes
    assert "2 failed or unfinished runs are left out" in notes


HALF = 4.302652730 * 2 / math.sqrt(3)
"""Of an interval: t(0.975, 2 degrees of freedom) of a standard deviation of 2."""
FINAL = (0.2 * (2 * LOW + 3 * HIGH) + HIGH + 0.2 * (4 * LOW + HIGH)) / 3
NONE = {f"{name}{end}": math.nan for name in ("rounds_to_target", "seconds_to_stay") for end in ("", "_low", "_high")}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("random", {"rounds_to_target": 8, "rounds_to_target_low": 8 - HALF, "rounds_to_target_high": 8 + HALF}),
        ("random", {"seconds_to_target": 16, "final_accuracy": FINAL, "rounds_to_target_bound": math.nan}),
        # Of three million bits in 2 s at 1 MHz each, and of 6 J a round, 2 J in a late upload.
        ("random", {"scheduled": 4, "arrived": 3, "miss_rate": 0.25, "spectral_efficiency_bps_per_hz": 1.5}),
        ("random", {"simulated_s": 20, "energy_j": 60, "bits_up": 35e6}),
        ("random", dict.fromkeys(("wasted_share_j", "wasted_share_j_low", "wasted_share_j_high"), 1 / 3)),
        # Random on seeds 0 and 1: 8 and 6 rounds.
        ("fedteddi", {"pairs": 2, "saving": 1 - 4.5 / 7}),
        ("random", {"pairs": math.nan, "saving": math.nan}),
        ("fed-cbs", {"not_reached": 3, "not_stayed": 3, "pairs": 0, "saving": math.nan, **NONE}),
        ("fed-cbs", {"rounds_to_target_bound": 10, "seconds_to_target_bound": 20, "joules_to_target_bound": 60}),
    ],
)
@pytest.mark.whole_family
def test_a_row_has_means_over_seeds_with_intervals_savings_of_pairs_and_bounds_of_what_was_never_reached(
    summary, policy, expected
):
    found = row(summary, policy)
    assert {name: found[name] for name in expected} == pytest.approx(expected, nan_ok=True)


def test_where_some_runs_never_reach_the_target_means_are_of_the_others_and_bounds_of_all(tmp_path, study_writer):
    paths = [reaches_in(4), reaches_in(8), [MIDDLE] * 10, [HIGH] * 9 + [LOW]]
    runs = [(knobs(policy), seed, "finished", path) for policy in ("random", "oort") for seed, path in enumerate(paths)]
    runs[2] = (*runs[2][:3], reaches_in(2))
    oort = row(summarise(study_writer(tmp_path / "some", runs)), "oort")
    assert (oort["not_reached"], oort["not_stayed"], oort["pairs"]) == (1, 2, 3)
    assert oort["rounds_to_target"] == pytest.approx((4 + 8 + 1) / 3)
    assert oort["rounds_to_target_bound"] == pytest.approx((4 + 8 + 10 + 1) / 4)
    assert oort["rounds_to_stay"] == 6.0
    assert oort["rounds_to_stay_bound"] == pytest.approx((4 + 8 + 10 + 10) / 4)
    assert math.isnan(oort["saving"]), "a saving would rest on the three seeds that reached the target"


@pytest.mark.parametrize(
    ("random", "said"),
    [
        ([reaches_in(4), reaches_in(8)], "No savings: no policy and the reference 'random' both reached the target on"),
        ([[MIDDLE] * 10] * 2, "No savings: no run of the reference policy 'random' reached the target."),
        ([], "No savings: no run of the reference policy 'random'"),
    ],
)
def test_a_study_without_a_saving_says_why(tmp_path, study_writer, random, said):
    paths = {"random": random, "oort": [reaches_in(4), [MIDDLE] * 10]}
    folder = study_writer(tmp_path / "study", paths, knobs={"tmax_s": 0.8})
    summary = summarise(folder)
    assert summary["saving"].isna().all()
    assert any(note.startswith(said) for note in footnotes(summary, folder))


def test_a_timing_only_study_gets_the_timing_columns_alone(tmp_path, study_writer):
    runs = [(knobs("random", tmax_s), seed, "finished", [None] * 3) for tmax_s in (0.8, 1.0) for seed in (0, 1)]
    folder = study_writer(tmp_path / "timing", runs, target=None, start=None)
    summary = summarise(folder)
    assert "scheduled" in summary
    learnt = ("accuracy", "target", "saving", "rounds", "reached", "pairs", "infeasible")
    assert not [name for name in summary if any(word in name for word in learnt)]
    assert footnotes(summary, folder) == ["Means over seeds ± 95 % t intervals."]
    one = study_writer(tmp_path / "one", runs[::2], target=None, start=None)
    assert footnotes(summarise(one), one) == ["One seed each, so that no value has an interval."]


@pytest.mark.parametrize(("last", "noted"), [(0.9, True), (0.31, False)])
def test_intervals_of_accuracies_that_cannot_be_are_said_to_have_too_few_seeds(tmp_path, study_writer, last, noted):
    folder = study_writer(tmp_path / "study", {"random": [[0.1, 0.2, end] for end in (0.3, last)]}, target=None)
    summary = summarise(folder)
    assert (summary["final_accuracy_high"] > 1).any() == noted
    assert any(note.startswith("Too few seeds") for note in footnotes(summary, folder)) == noted


def test_the_summary_file_is_the_table_and_the_same_bytes_every_time(study, summary, tmp_path, study_writer):
    path = write_summary(study)
    first = path.read_bytes()
    assert path == study / "summary.csv"
    pd.testing.assert_frame_equal(pd.read_csv(path), summary, check_dtype=False)
    assert write_summary(study).read_bytes() == first
    # A whole number stays whole where another row lacks it.
    runs = [({"policy": "random", "devices": 30}, 0, "finished", [None]), (knobs("random"), 0, "finished", [None])]
    path = write_summary(study_writer(tmp_path / "other", runs, target=None, start=None))
    assert pd.read_csv(path, dtype=str)["devices"].tolist()[0] == "30"


def test_a_target_below_the_start_accuracy_names_the_run_and_both_numbers(tmp_path, study_writer):
    runs = [(knobs("random"), 0, "finished", reaches_in(2))]
    folder = study_writer(tmp_path / "study", runs, start=0.78)
    with in_one_line(r"run0: target 0\.75 .* 0\.78"):
        summarise(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": 75}, "target: expected null or an accuracy"),
        ({"runs": None}, "runs: expected a list"),
        ({"reference": 3}, "reference: expected a text"),
        ({"runs": [{"folder": "a", "knobs": {"policy": ["x"]}, "seed": 0, "config": {}}]}, r"runs\[0\]: knobs.policy"),
        ({"runs": [{"folder": "a", "knobs": {}, "config": {}}]}, r"runs\[0\]: seed: expected an integer"),
        ({"runs": [{"folder": "a", "knobs": {}, "seed": 0, "config": {}}] * 2}, r"runs\[1\]: .* in the plan already"),
    ],
)
def test_a_malformed_plan_is_refused_in_one_line_that_names_the_field(tmp_path, change, message):
    plan = {"name": "n", "target": None, "reference": "random", "runs": [], **change}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with in_one_line(message) as error:
        read_study(tmp_path)
    assert "plan.json" in str(error.value)


def test_bare_run_folders_are_told_apart_by_the_settings_that_differ(tmp_path, run_writer):
    folders = [run_writer(tmp_path / name, [LOW], seed=seed) for seed, name in enumerate("ab")]
    config = folders[1] / "config.toml"
    config.write_text(config.read_text() + '[selection]\npolicy = "fedteddi"\nlambda_0 = 0.5\n')
    first, second = runs_of(folders)
    assert first.knobs == {"tmax_s": 2.0}
    assert second.knobs == {"tmax_s": 2.0, "policy": "fedteddi"}
    # An option is a knob where runs of the same policy differ in it.
    third = run_writer(tmp_path / "c", [LOW], seed=2)
    (third / "config.toml").write_text(config.read_text().replace("0.5", "2"))
    assert [run.knobs.get("lambda_0") for run in runs_of([*folders, third])] == [None, 0.5, 2]
    assert (first.seed, second.seed) == (0, 1)


def test_studies_beside_bare_runs_are_said_to_be_left_out(tmp_path, run_writer):
    config = run_writer(tmp_path / "a", [LOW]) / "config.toml"
    config.write_text(config.read_text() + '[selection]\npolicy = "random"\n')
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/plan.json").write_text("{}")
    assert "Not part of it are the studies in this folder: policies." in footnotes(summarise(tmp_path), tmp_path)


def test_a_run_without_a_finished_round_is_refused(tmp_path, run_writer):
    (run,) = runs_of([run_writer(tmp_path / "empty", [])])
    with in_one_line("no finished round"):
        _ = run.rounds


def test_a_summary_is_made_again_when_it_was_edited_or_a_run_has_changed(study, monkeypatch):
    made = []

    def counted(folder, *known):
        made.append(folder)
        return summarise(folder, *known)

    monkeypatch.setattr("edgesim.analysis.summary.summarise", counted)
    path = write_summary(study)
    first = path.read_bytes()
    whole = current_summary(study)
    assert len(made) == 1
    path.write_bytes(first[:-2])
    pd.testing.assert_frame_equal(current_summary(study), whole, check_dtype=False)
    assert len(made) == 2
    assert write_summary(study).read_bytes() == first
    config = next(study.glob("*/run.json"))
    config.write_text(config.read_text() + "\n")
    current_summary(study)
    assert len(made) == 4


def test_notes_are_kept_while_nothing_that_they_say_has_changed(study, summary):
    said = notes(summary, study)
    assert notes(summary, study) == said == footnotes(summary, study)
    assert notes(summary.assign(not_reached=0), study) != said


@pytest.mark.parametrize("error", [EdgesimError("damaged"), OSError(5, "Input/output error")])
def test_a_run_that_cannot_be_measured_yet_does_not_end_the_study_that_goes_on(study, monkeypatch, error):
    def fail(run, target):
        raise error

    monkeypatch.setattr(stored_measures, "measure", fail)
    known, run = StoredMeasures(study, None), read_study(study).finished[0]
    known.prepare(run.folder)
    with pytest.raises(type(error)):
        known.of(run)


def test_measures_of_a_run_are_worked_out_once_until_it_or_the_target_is_another(tmp_path, study_writer, monkeypatch):
    study = study_writer(tmp_path / "s", [(knobs("random"), seed, "finished", reaches_in(2, 3)) for seed in (0, 1)])
    measured, measure = [], stored_measures.measure
    monkeypatch.setattr(
        stored_measures, "measure", lambda run, target: measured.append(run.folder) or measure(run, target)
    )
    first = summarise(study)
    runs = [run.folder for run in read_study(study).finished]
    assert measured == runs
    pd.testing.assert_frame_equal(summarise(study), first, check_exact=True)
    assert measured == runs
    # As of a run that was run again with another result.
    run_json = runs[0] / "run.json"
    run_json.write_text(run_json.read_text() + " ")
    summarise(study)
    assert measured == [*runs, runs[0]]
    known = StoredMeasures(study, 0.76)
    known.of(read_study(study).finished[0])
    assert measured == [*runs, runs[0], runs[0]]
    whole = json.loads((study / "measures.json").read_text())
    without = {name: {"digest": entry["digest"]} for name, entry in whole.items()}
    empty = json.dumps(dict.fromkeys([run.name for run in runs], 1))
    for damaged in ("{", "[]", '{"x": 1}', empty, json.dumps(without)):
        (study / "measures.json").write_text(damaged)
        pd.testing.assert_frame_equal(summarise(study), first, check_exact=True)
