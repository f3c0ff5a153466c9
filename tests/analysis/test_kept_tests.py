"""Tests of runs that are kept when the run folders are gone."""

import shutil

import numpy as np
import pandas as pd
import pytest
from edited_runs import edit_json
from made_up_runs import write_study
from refusals import in_one_line

from edgesim.analysis.kept_tests import KeptRun, kept_runs, merged, read_tests, study_tests, write_tests
from edgesim.analysis.measures import to_target
from edgesim.analysis.runs import read_study
from edgesim.plots.groups import panels_of
from edgesim.plots.rounds_to_target import draw_rounds_to_target
from edgesim.plots.scheduled import draw_scheduled, scheduled_per_round

TARGET = 0.7


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """A study of two policies on two seeds, written by hand, with tests of every second round and of the last."""
    folder = tmp_path_factory.mktemp("kept") / "digits"
    write_study(folder, [{"policy": policy} for policy in ("random", "fedteddi")], target=TARGET, rounds=7)
    for run in read_study(folder).finished:
        rounds = run.rounds
        is_tested = (rounds["round"] % 2 == 0) | (rounds["round"] == 7)
        rounds["test_accuracy"] = rounds["test_accuracy"].where(is_tested)
        rounds["energy_j"] *= rounds["round"]
        rounds.to_parquet(run.folder / "rounds.parquet")
        edit_json(run.folder / "run.json", test_images=360)
    return folder


def test_a_row_says_what_the_rounds_since_the_test_before_took(learnt, tmp_path):
    study = read_study(shutil.copytree(learnt, tmp_path / "digits"))
    run = study.finished[0]
    run.rounds["selected"] += run.rounds["round"] % 3
    run.rounds.to_parquet(run.folder / "rounds.parquet")
    tests = study_tests(study)
    rows, rounds = tests[tests["run"] == run.folder.name], run.rounds
    assert rows["round"].tolist() == [0, 2, 4, 6, 7]
    assert rows["t_s"].tolist() == [0.0, *rounds["t_end_s"].iloc[[1, 3, 5, 6]]]
    assert rows["accuracy"].tolist()[1:] == rounds["test_accuracy"].dropna().tolist()
    selected = rounds["selected"].to_numpy(dtype=float)
    between = [selected[:2].mean(), selected[2:4].mean(), selected[4:6].mean(), selected[6]]
    assert rows["clients"].tolist()[1:] == pytest.approx(between)
    assert rows["energy_j"].tolist() == pytest.approx([0.0, *rounds["energy_j"].cumsum().iloc[[1, 3, 5, 6]]])
    assert set(rows["policy"]) == {"random"}
    assert set(rows["status"]) == {"finished"}
    assert set(rows["test_images"]) == {360}


def test_figures_and_measures_of_kept_tests_are_those_of_the_runs(learnt, tmp_path):
    path = tmp_path / "tests.parquet"
    write_tests(path, study_tests(read_study(learnt)))
    runs, kept = read_study(learnt).finished, kept_runs(read_tests(path), "digits")
    assert [run.knobs for run in kept] == [run.knobs for run in runs]
    for run, copy in zip(runs, kept, strict=True):
        assert to_target(copy, TARGET) == pytest.approx(to_target(run, TARGET))
        assert scheduled_per_round(copy) == pytest.approx(scheduled_per_round(run))
        assert scheduled_per_round(copy)["new"] > 0
    for mine, theirs in zip(panels_of(kept)[0].series, panels_of(runs)[0].series, strict=True):
        assert mine.label == theirs.label
    for draw in (draw_scheduled, lambda panels: draw_rounds_to_target(panels, [TARGET])):
        heights = [[patch.get_bbox().bounds for patch in draw(panels_of(of)).axes[0].patches] for of in (kept, runs)]
        assert np.allclose(*heights)


def test_an_unfinished_run_has_the_tests_that_it_made(learnt, tmp_path):
    folder = shutil.copytree(learnt, tmp_path / "digits")
    entries = read_study(folder).planned
    shutil.rmtree(entries[1].run.folder)
    # As of a run that could not begin.
    for table in entries[2].run.folder.glob("*.parquet"):
        table.unlink()
    edit_json(entries[0].run.folder / "run.json", status="interrupted")
    tests = study_tests(read_study(folder))
    assert tests.groupby("run", sort=False)["status"].first().tolist() == ["stopped", "finished"]


def of(run, accuracies, **knobs):
    count = len(accuracies)
    table = {"study": "s", "run": run, "status": "finished", "commit": None, "seed": 0, "test_images": 100, **knobs}
    of_test = {"round": np.arange(count) * 1.0, "t_s": np.arange(count) * 2.0, "accuracy": accuracies}
    return pd.DataFrame({**of_test, "clients": 3.0, "newcomers": np.nan, "energy_j": 1.0}).assign(**table)


ONE = of("a", [0.1, 0.2])


def test_of_a_run_in_two_tables_the_last_rows_count():
    old = merged([of("a", [0.1, 0.2], lr=0.1), of("b", [0.3, 0.4], lr=0.1)])
    new = merged([old, of("a", [0.1, 0.2, 0.5], lr=0.1, steps=5.0)])
    assert new["run"].tolist() == ["b", "b", "a", "a", "a"]
    (b, a) = kept_runs(new, "s")
    assert (a.knobs, b.knobs) == ({"lr": 0.1, "steps": 5.0}, {"lr": 0.1})
    assert a.tests["accuracy"].tolist() == [0.2, 0.5]
    assert merged([]).empty


def test_without_newcomers_bars_are_not_divided():
    (run,) = kept_runs(of("a", [0.1, 0.2, 0.3]), "s")
    assert isinstance(run, KeptRun)
    assert run.has_newcomers is None
    assert run.scheduled_by_class[["with_new", "only_old"]].to_numpy().tolist() == [[0.0, 3.0], [0.0, 3.0]]


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: write_tests(path, ONE.drop(columns="accuracy")), "no column 'accuracy'; expected study, run,"),
        (lambda path: write_tests(path, ONE.assign(t_s="soon")), "t_s: expected numbers"),
        (lambda path: None, "no such file"),
        (lambda path: path.write_bytes(b"PAR1 and no more"), "not a readable Parquet file"),
    ],
    ids=["no accuracies", "no numbers", "absent", "broken"],
)
@pytest.mark.whole_family
def test_a_file_that_holds_no_tests_is_one_line(tmp_path, write, said):
    write(tmp_path / "tests.parquet")
    with in_one_line(f"tests.parquet: {said}"):
        read_tests(tmp_path / "tests.parquet")
