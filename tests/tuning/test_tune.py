"""`edgesim tune` with real runs: its study, its table, pruning, runs that are there already, several processes."""

import json
import os
import sys
from importlib import metadata

import numpy as np
import pandas as pd
import pytest
import tomli_w
from small_runs import TIMING
from stopped_runs import content
from two_processes import one_killed
from typed_commands import edgesim, quiet, refused

from edgesim import Study, grid, run_study, tune
from edgesim.analysis.summary import summarise
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import leased
from edgesim.base.processes import Stopped
from edgesim.folder.records import read_config, read_run, read_table
from edgesim.simulation import composition as simulation
from edgesim.studies.ledger import read_ledger
from edgesim.tuning.findings import answers_of
from edgesim.tuning.task import make_task
from edgesim.tuning.trial import Trials

SHORT = TIMING | {"rounds": 6}
LEARNING = {
    "stop_at_s": 8,
    "learning": {"lr": 0.1, "pretrain": True},
    "round": {"payload_bits": 1e7},
    "data": {"partition": "fedteddi"},
}
TMAX = {"round.tmax_s": [0.4, 0.8, 1.6, 3.2]}
CONFIG = tomli_w.dumps(TIMING)


pytestmark = pytest.mark.usefixtures("studies_here", "figures_as_text")


def tuned(out, base=SHORT, knobs=TMAX, objectives=("energy-j",), trials=4, **how):
    how = {"seeds": 1, "judge": 0, "jobs": 1, "prune": False} | how
    return tune(base, knobs, objectives, trials, out, **how)


def when_made(out):
    return {path.parent.name: path.stat().st_mtime_ns for path in sorted(out.glob("*/run.json"))}


def test_the_runs_of_all_trials_are_those_of_a_study_with_its_numbers(tmp_path, capsys, monkeypatch):
    linked = []
    monkeypatch.setattr(os, "symlink", lambda *given, **_: linked.append(given))
    knobs = {"round.tmax_s": [0.4, 0.8, 1.6]}
    found = tuned(tmp_path / "out", knobs=knobs, seeds=2, trials=3, judge=2)
    # The journal is locked without a link, which another process would refuse.
    assert linked == []
    runs = grid(SHORT, knobs, range(2))
    run_study(Study("plain", runs, reference="random"), tmp_path / "plain", 1, quiet())
    ledger = read_ledger(tmp_path / "out")
    assert {state.status for state in ledger.values()} == {"finished"}
    assert len(ledger) == 6
    for name in ledger:
        assert content(tmp_path / "out" / name) == content(tmp_path / "plain" / name)
    expected = summarise(tmp_path / "plain").set_index("tmax_s")
    for row in pd.read_csv(tmp_path / "out/trials.csv").to_dict("records"):
        assert row["status"] == "complete"
        for column in ("energy_j", "energy_j_low", "energy_j_high"):
            assert row[column] == pytest.approx(expected.at[row["tmax_s"], column], rel=1e-12)
    # The best ones again, over seeds that chose nothing.
    best = found.trials.sort_values("energy_j")["tmax_s"].tolist()
    assert found.best["tmax_s"].tolist() == best
    assert sorted(found.fresh["tmax_s"]) == sorted(best[:2])
    fresh = json.loads((tmp_path / "out-fresh/plan.json").read_text())["runs"]
    assert {run["seed"] for run in fresh} == {2, 3}
    assert "on the seeds that chose it" in found.answers[0]
    said = capsys.readouterr().out
    assert "(3 of 3): Tmax = " in said
    assert said.rstrip().endswith("figures in " + str(tmp_path / "out/plots"))
    assert (tmp_path / "out/plots/tuning-history.png").is_file()
    # What a study's commands say of it.
    assert "6 runs: 6 finished" in edgesim("study", "status", tmp_path / "out")[1]
    assert edgesim("study", "run", tmp_path / "out")[0] == 0
    assert "tmax_s" in edgesim("study", "table", tmp_path / "out")[1]


def test_the_same_command_again_runs_nothing_and_more_trials_go_on(tmp_path):
    first = tuned(tmp_path / "out", trials=2)
    before = when_made(tmp_path / "out")
    assert tuned(tmp_path / "out", trials=2).trials.equals(first.trials)
    assert when_made(tmp_path / "out") == before
    more = tuned(tmp_path / "out", trials=60)
    assert more.trials.head(2).equals(first.trials)
    assert sorted(more.trials["tmax_s"]) == TMAX["round.tmax_s"]


def test_finished_runs_of_a_study_count_as_answered_trials(tmp_path, capsys):
    run_study(Study("s", grid(SHORT, {"round.tmax_s": [0.4, 0.8, 7.0]}, range(2))), tmp_path, 1, quiet())
    found = tuned(tmp_path, trials=2, seeds=2)
    assert "2 finished cells of the study count as trials" in capsys.readouterr().out
    # Of the list are 0.4 and 0.8; 7.0 is a run of the study, and no trial.
    assert found.trials.set_index("tmax_s")["imported"].to_dict() == {0.4: True, 0.8: True, 1.6: False, 3.2: False}
    assert found.trials["energy_j"].notna().all()
    # The journal is lost: all of them count.
    (tmp_path / "tuning/journal.log").unlink()
    assert tuned(tmp_path, trials=60, seeds=2).trials["imported"].all()


def test_a_study_of_something_else_is_refused_and_left_as_it_is(tmp_path):
    run_study(Study("s", grid(SHORT, {"round.tmax_s": [0.4]}, [0])), tmp_path / "s", 1, quiet())
    before = sorted(path.name for path in (tmp_path / "s").iterdir())
    with pytest.raises(EdgesimError, match=r"s: holds a study of other runs \(rounds differs in tmax0.4-s0\); choose"):
        tuned(tmp_path / "s", SHORT | {"rounds": 20})
    with pytest.raises(EdgesimError, match=r"s: holds another study, over tmax_s; choose another folder$"):
        tuned(tmp_path / "s", knobs={"devices.count": [5, 9]})
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == before
    (tmp_path / "text").mkdir()
    (tmp_path / "text/notes.txt").write_text("mine")
    with pytest.raises(EdgesimError, match="text: is not empty and not a study's folder"):
        tuned(tmp_path / "text")
    tuned(tmp_path / "t", trials=1)
    with pytest.raises(EdgesimError, match=r"t: holds a tuning of something else \(objectives differs\); choose"):
        tuned(tmp_path / "t", objectives=("bits-up",))
    found = tuned(tmp_path / "t", objectives=("bits-up",), trials=2, fresh=True)
    assert len(found.trials) == 2
    assert "bits_up" in found.trials


def test_a_combination_that_the_config_refuses_and_a_run_that_fails_are_failed_trials(tmp_path):
    found = tuned(
        tmp_path / "out", knobs={"round.tmax_s": [0.01, 0.8], "selection.policy": ["random", "best-channel"]}, trials=9
    )
    failed = found.trials[found.trials["status"] == "failed"]
    assert set(failed["tmax_s"]) == {0.01}
    assert len(failed) == 2
    assert failed["reason"].str.contains("no device can").all()
    assert found.trials["counts"].sum() == 2


@pytest.mark.slow
def test_runs_that_have_lost_are_given_up_at_a_round_and_the_study_says_so(tmp_path, capsys):
    found = tuned(tmp_path / "out", trials=4, judge=1, prune=True)
    whole = tuned(tmp_path / "whole", trials=4, judge=1)
    pruned = found.trials[found.trials["status"] == "pruned"]
    assert 1 <= len(pruned) <= 3
    assert found.answers == whole.answers
    best = found.trials["energy_j"].min()
    assert (pruned["energy_j_bound"] > best).all()
    folders = {name for name, state in read_ledger(tmp_path / "out").items() if state.status == "pruned"}
    assert len(folders) == len(pruned)
    for name in folders:
        assert "pruned behind round" in read_run(tmp_path / "out" / name)["reason"]
    said = capsys.readouterr().out
    assert "; given up: " in said
    assert "better whatever follows" in said
    code, said = edgesim("study", "run", tmp_path / "out")
    assert code == 0
    assert f"{len(pruned)} pruned" in said
    assert f"{len(pruned)} run" in edgesim("study", "table", tmp_path / "out")[1]
    # Whoever wants them whole gets them from where they stopped, with the same bytes.
    run_study(Study("out", grid(SHORT, TMAX, [0])), tmp_path / "out", 1, quiet())
    for name, state in read_ledger(tmp_path / "out").items():
        assert state.status == "finished"
        assert content(tmp_path / "out" / name) == content(tmp_path / "whole" / name)


@pytest.mark.slow
def test_two_objectives_with_real_training_give_a_front_its_figures_and_fresh_seeds(tmp_path):
    knobs = {"round.tmax_s": (0.3, 2.0), "radio.bandwidth_hz": [10e6, 20e6, 40e6]}
    found = tuned(
        tmp_path / "out", LEARNING, knobs, ("seconds-to-target", "joules-to-target"), 9, target=0.6, seeds=2, judge=2
    )
    values = found.trials[found.trials["counts"]][["seconds_to_target", "joules_to_target"]]
    front = found.best[["seconds_to_target", "joules_to_target"]]
    assert len(front) >= 1
    for one in front.itertuples(index=False):
        beaten = (values["seconds_to_target"] <= one[0]) & (values["joules_to_target"] <= one[1])
        assert beaten.sum() == 1
    assert 1 <= len(found.fresh) <= 2
    assert len(found.answers) == 2
    for name in ("history", "front", "contour"):
        assert (tmp_path / f"out/plots/tuning-{name}.png").is_file()


@pytest.mark.slow
def test_a_target_that_no_trial_reaches_is_said_so_with_bounds_instead_of_times(tmp_path):
    base = LEARNING | {"stop_at_s": 2}
    found = tuned(
        tmp_path / "out", base, {"round.tmax_s": [0.5, 0.8]}, ("seconds-to-target", "joules-to-target"), target=0.99
    )
    assert found.best.empty
    assert found.answers[0].startswith("No trial reached the target 0.99 on all of its seeds: what follows are bounds")
    assert "> " in found.answers[1]
    assert "(0 of 1)" in found.answers[1]
    assert found.trials["seconds_to_target"].isna().all()
    assert found.trials["seconds_to_target_bound"].notna().all()
    assert not found.trials["counts"].any()


FRAMES = {"rounds": [3, 3], "data": {"partition": "fedteddi"}, "learning": {"pretrain": True}}
FIXED_ROUNDS = {
    "rounds": 6,
    "data": {"partition": "dirichlet"},
    "learning": {"pretrain": False, "lr": 0.1},
    "round": {"payload_bits": 1e7},
}


def test_an_objective_in_seconds_gives_all_cells_the_same_time_and_ends_runs_at_the_target(tmp_path, capsys):
    """In six rounds of 0.5 s no run gets there; in as many seconds as six rounds of 2 s take, those are the sooner."""
    knobs = {"round.tmax_s": [0.5, 2.0]}
    found = tuned(tmp_path / "out", FIXED_ROUNDS, knobs, ("seconds-to-target",), trials=2, target=0.5)
    told = capsys.readouterr().out
    assert "stop_at_s = 12 (6 rounds x 2 s, the longest deadline), in place of rounds; runs end when they reach" in told
    assert sorted(found.trials["tmax_s"]) == [0.5, 2.0]
    assert found.trials["counts"].all()
    assert "widen it" not in " ".join(found.answers)
    for folder in sorted((tmp_path / "out").glob("tmax*")):
        config, rounds = read_config(folder), read_table(folder, "rounds")
        assert (config["stop_at_s"], config["stop_at_accuracy"], "rounds" in config) == (12.0, 0.5, False)
        tested = rounds["test_accuracy"]
        assert tested.iloc[-1] >= 0.5 > tested.iloc[:-1].max()
        assert read_run(folder)["reason"].startswith("stop_at_accuracy = 0.5, a test has")
    short = found.trials.set_index("tmax_s")["seconds_to_target"]
    assert short[0.5] > 6 * 0.5


@pytest.mark.parametrize(
    ("base", "objectives", "changed"),
    [
        (FIXED_ROUNDS, ["seconds-to-target", "joules-to-target"], {"stop_at_s": 12.0, "stop_at_accuracy": 0.5}),
        (FIXED_ROUNDS, ["seconds-to-stay"], {"stop_at_s": 12.0}),
        (FIXED_ROUNDS, ["seconds-to-target", "final-accuracy"], {"stop_at_s": 12.0}),
        (FIXED_ROUNDS | {"stop_at_s": 7.0}, ["seconds-to-target"], {"stop_at_s": 7.0, "stop_at_accuracy": 0.5}),
        (FIXED_ROUNDS, ["rounds-to-target", "simulated-s"], {"rounds": 6}),
        (LEARNING, ["seconds-to-target"], {"stop_at_s": 8, "stop_at_accuracy": 0.5}),
        (LEARNING, ["seconds-to-stay"], {"stop_at_s": 8}),
        (FRAMES, ["seconds-to-target"], {"rounds": [3, 3], "stop_at_accuracy": 0.5}),
    ],
)
def test_only_fixed_rounds_of_one_frame_are_replaced_and_only_where_seconds_to_the_target_are_sought(
    base, objectives, changed
):
    task = make_task(base, {"round.tmax_s": (0.5, 2.0)}, objectives, 0.5, 1, 0)
    ends = {key: task.base[key] for key in ("rounds", "stop_at_s", "stop_at_accuracy") if key in task.base}
    assert ends == changed
    assert {key: value for key, value in task.base.items() if key not in ends} == {
        key: value for key, value in base.items() if key not in ("rounds", "stop_at_s")
    }


@pytest.mark.parametrize(("key", "values"), [("rounds", (4, 8)), ("stop_at_s", (4.0, 8.0))])
def test_where_the_time_itself_is_tuned_a_line_says_that_cells_have_unequal_time(key, values):
    task = make_task(FIXED_ROUNDS, {"round.tmax_s": (0.5, 2.0), key: values}, ["seconds-to-target"], 0.5, 1, 0)
    assert task.equal_time == (
        f"an objective in s: {key} is tuned: cells with less of it have less time to reach the target; runs end when "
        "they reach the target"
    )
    assert task.base == FIXED_ROUNDS | {"stop_at_accuracy": 0.5}


def test_a_cell_that_was_cut_off_before_the_best_ones_time_is_named():
    """Frames have fixed rounds: two of three runs of 0.5 s were tested until 3 s, and the best takes 4."""
    task = make_task(FRAMES, {"round.tmax_s": [0.5, 1.0, 2.0]}, ["seconds-to-target"], 0.75, 3, 0)
    assert "have less time" in task.equal_time
    row = {"seeds": 3, "left_out": 0, "seconds_to_target_low": 3.0}
    summary = pd.DataFrame(
        [
            row | {"tmax_s": 0.5, "not_reached": 2, "seconds_to_target": 2.5, "seconds_to_target_bound": 2.8},
            row | {"tmax_s": 1.0, "not_reached": 1, "seconds_to_target": 6.0, "seconds_to_target_bound": 5.9},
            row | {"tmax_s": 2.0, "not_reached": 0, "seconds_to_target": 4.0, "seconds_to_target_bound": np.nan},
        ]
    ).assign(seconds_to_target_high=5.0)
    answers = answers_of(task, summary, summary.tail(1), pd.DataFrame())
    assert answers[0].startswith("Least seconds to target (mean ± 95 %): Tmax = 2 s, 4 ± 1 s")
    assert answers[1] == (
        "Cut off before the best one's seconds to target, and perhaps better: Tmax = 0.5 s (> 2.8 s (1 of 3)); give "
        "runs more time."
    )
    assert len(answers) == 2


def test_of_two_values_none_is_called_an_edge_and_of_three_the_ends_are():
    for tmax_s, edges in (([0.4, 0.8], []), ([0.4, 0.8, 1.6], [0.4, 1.6])):
        task = make_task(SHORT, {"round.tmax_s": tmax_s}, ["simulated-s"], None, 1, 0)
        for best in tmax_s:
            row = {"seeds": 1, "left_out": 0, "tmax_s": best, "simulated_s": 2.0}
            summary = pd.DataFrame([row | {"simulated_s_low": np.nan, "simulated_s_high": np.nan}])
            (answer,) = answers_of(task, summary, summary, pd.DataFrame())
            assert answer.endswith("; that is the edge of round.tmax_s, widen it.") == (best in edges)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--objective", "energy"], "objective: unknown objective 'energy', did you mean 'energy-j'? known: "),
        (["--objective", "seconds-to-target"], "objective seconds-to-target: needs a target accuracy; give a target"),
        (["--objective", "energy-j", "--objective", "energy-j"], "objective energy-j: is given twice"),
        (["--objective", "final-accuracy"], 'trains nothing (learning.training = "none"), so that no run has it'),
        (["--objective", "energy-j", "--trials", "0"], "trials 0: expected 1 or more"),
        (["--objective", "energy-j", "--seeds", "0"], "seeds 0: expected 1 or more"),
        (["--objective", "energy-j", "--jobs", "0"], "jobs 0: expected 1 or more"),
        (["--objective", "energy-j", "--judge", "-1"], "judge -1: expected 0 or more"),
        (["--objective", "energy-j", "--target", "1.5"], "target 1.5: expected an accuracy above 0 and at most 1"),
        (["--objective", "energy-j", "--set", "round.tmax_s=1"], "set round.tmax_s: the tuning itself varies it"),
        (["--objective", "energy-j", "--knob", "radio.bandwith_hz=1e6,2e6"], "did you mean 'radio.bandwidth_hz'?"),
        (
            ["--objective", "energy-j", "--set", "availability.model=table", "--set", "availability.file='x.parquet'"],
            "x.parquet",
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path, words, told):
    (tmp_path / "run.toml").write_text(CONFIG)
    out = tmp_path / "out"
    assert told in refused("tune", tmp_path / "run.toml", "--knob", "round.tmax_s=0.5:2", *words, "--out", out)
    assert not out.exists()


def test_without_optuna_one_line_says_how_to_install_it(tmp_path, monkeypatch):
    def version(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(EdgesimError, match=r"tuning needs Optuna: pip install 'edgesim\[optuna\]'"):
        tuned(tmp_path / "out")
    monkeypatch.setattr(metadata, "version", lambda _: "4.6.0")
    with pytest.raises(EdgesimError, match=r"version 4\.6\.0 is too old"):
        tuned(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_two_processes_on_one_folder_one_killed_answer_all_trials(tmp_path):
    # Runs that take long beside what two processes that start together are apart.
    (tmp_path / "run.toml").write_text("rounds = 1200\n" + CONFIG.partition("\n")[2])
    command = [sys.executable, "-m", "edgesim", "tune", "run.toml", "--knob", "round.tmax_s=0.4:3"]
    command += ["--knob", "radio.bandwidth_hz=5e6,10e6,20e6", "--objective", "energy-j", "--trials", "4"]
    command += ["--seeds", "1", "--jobs", "1", "--judge", "0", "--no-prune", "--out", "out"]
    one_killed(command, tmp_path, lambda: _running(tmp_path / "out"))
    trials = pd.read_csv(tmp_path / "out/trials.csv")
    assert len(trials) == 4
    assert set(trials["status"]) == {"complete"}
    assert len(trials[["tmax_s", "bandwidth_hz"]].drop_duplicates()) == 4
    assert [state.status for state in read_ledger(tmp_path / "out").values()] == ["finished"] * 4
    # Each value is that of the study's own table.
    summary = summarise(tmp_path / "out").set_index(["tmax_s", "bandwidth_hz"])["energy_j"]
    for row in trials.itertuples():
        assert row.energy_j == pytest.approx(summary[row.tmax_s, row.bandwidth_hz], rel=1e-12)
    assert not list((tmp_path / "out/tuning").glob("worker-*"))


def _running(folder):
    try:
        return sum(state.status == "running" for state in read_ledger(folder).values())
    except EdgesimError:
        return 0


def test_fresh_asks_all_trials_anew_and_runs_their_runs_again_with_the_same_bytes(tmp_path):
    out = tmp_path / "out"
    first = tuned(out, trials=2, judge=1)
    before, bytes_before = when_made(out), {path.name: content(path) for path in out.glob("tmax*")}
    judged = when_made(tmp_path / "out-fresh")
    again = tuned(out, trials=2, judge=1, fresh=True)
    pd.testing.assert_frame_equal(again.trials, first.trials)
    after = when_made(out)
    assert after.keys() == before.keys()
    assert all(after[name] > before[name] for name in before)
    assert {path.name: content(path) for path in out.glob("tmax*")} == bytes_before
    again_judged = when_made(tmp_path / "out-fresh")
    assert all(again_judged[name] > judged[name] for name in judged)
    # Cells of before count no longer until a trial asks for them.
    alone = tuned(out, trials=1, fresh=True).trials
    assert len(alone) == 1
    pd.testing.assert_frame_equal(tuned(out, trials=1).trials, alone)
    later = tuned(out, trials=2).trials
    assert len(later) == 2
    assert not later["imported"].any()


@pytest.mark.parametrize("fresh", [False, True])
def test_what_is_stopped_says_how_to_go_on_and_then_asks_the_same_trial_again(tmp_path, monkeypatch, fresh):
    evaluate, evaluated = Trials.__call__, []

    def stops(self, *asked):
        evaluated.append(asked)
        if len(evaluated) == 2:
            raise KeyboardInterrupt
        return evaluate(self, *asked)

    (tmp_path / "run.toml").write_text(tomli_w.dumps(SHORT))
    words = ["tune", tmp_path / "run.toml", "--knob", "round.tmax_s=0.4:3", "--objective", "energy-j", "--trials", "2"]
    words += ["--seeds", "1", "--judge", "0", "--jobs", "1", "--no-prune", "--out"]
    with monkeypatch.context() as patch:
        patch.setattr(Trials, "__call__", stops)
        status, said = edgesim(*words, tmp_path / "out", *["--fresh"] * fresh)
    assert status == 130
    how = " without fresh" if fresh else ""
    assert said.endswith(f"stopped; all runs are saved, and the same command{how} resumes {tmp_path / 'out'}")
    assert edgesim(*words, tmp_path / "out")[0] == 0
    trials = pd.read_csv(tmp_path / "out/trials.csv")
    asked = [cell.values["round.tmax_s"] for cells, _ in evaluated for cell in cells]
    # The trial that was stopped is asked again, and counts once.
    assert trials["tmax_s"].tolist() == asked
    assert trials["trial"].tolist() == [0, 1]
    assert set(trials["status"]) == {"complete"}


def test_files_and_code_of_cells_are_found_where_the_first_cell_is_refused():
    policies = ["best-channel", "edgesim.selection.random_choice.RandomChoice"]
    knobs = {"devices.count": [2, 6], "round.count": [3, 4], "selection.policy": policies}
    base = SHORT | {"round": SHORT["round"] | {"admission": "count", "count": 2}}
    task = make_task(base, knobs, ["energy-j"], None, 1, 0)
    with pytest.raises(EdgesimError, match=r"round\.count"):
        task.runs({key: values[0] for key, values in knobs.items()})
    # Of both policies.
    assert len(task.inputs()["selection.policy"]) == 2


def test_a_cell_that_has_run_is_not_given_up(tmp_path, monkeypatch):
    """Of the same trials, others are where nothing has run yet."""
    out = tmp_path / "out"
    whole = tuned(out, trials=4).trials

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("edgesim.tuning.tune.search", stop)
        with pytest.raises(Stopped):
            tuned(out, trials=4, fresh=True)
    later = tuned(out, trials=4, judge=1, prune=True).trials
    assert set(later["status"]) == {"complete"}
    assert not later["imported"].any()
    assert sorted(later["energy_j"]) == sorted(whole["energy_j"])


def test_a_fresh_seed_whose_run_fails_is_told_and_its_cell_is_not_first(tmp_path, monkeypatch):
    """The best cell's, which is judged first."""
    run, best = simulation.run, []

    def fails(config, folder, *how, **knobs):
        if config.seed == 3:
            best.append(config.round.tmax_s)
            if config.round.tmax_s == best[0]:
                raise EdgesimError("the band is too narrow")
        return run(config, folder, *how, **knobs)

    monkeypatch.setattr("edgesim.simulation.composition.run", fails)
    found = tuned(tmp_path / "out", knobs={"round.tmax_s": [0.4, 0.8]}, trials=2, seeds=2, judge=2)
    assert best[0] == found.best["tmax_s"].iloc[0]
    assert "(1 of 2 seeds; the runs of the others failed) on fresh ones" in found.answers[0]
    assert "comes first of the 2 judged again" in found.answers[1]


def test_trials_of_other_code_are_refused_and_asked_anew_with_fresh(tmp_path, monkeypatch):
    out, code = tmp_path / "out", tmp_path / "policy_that_changes.py"
    text = "from edgesim.selection.{0} import {1}\n\nclass Mine({1}):\n    pass\n"
    code.write_text(text.format("random_choice", "RandomChoice"))
    monkeypatch.syspath_prepend(tmp_path)
    how = {"base": SHORT | {"selection": {"policy": "policy_that_changes.Mine"}}, "trials": 2}
    tuned(out, **how)
    code.write_text(text.format("best_channel", "BestChannel"))
    with pytest.raises(EdgesimError, match=r"its trials ran with other files or code \(selection.policy differs\)"):
        tuned(out, **how)
    tuned(out, **how, fresh=True)
    hashes = {read_run(run)["inputs"]["selection.policy"] for run in out.glob("tmax*")}
    assert len(hashes) == 1


def test_fresh_is_refused_while_another_process_works_on_the_tuning(tmp_path):
    out = tmp_path / "out"
    tuned(out, trials=1)
    with leased(out / "tuning/worker-1"), pytest.raises(EdgesimError, match=r"another process works on its tuning \("):
        tuned(out, trials=1, fresh=True)
    assert (out / "tuning/journal.log").is_file()
