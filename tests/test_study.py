import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from small_runs import TIMING
from typed_commands import quiet
from waiting import wait_for

from edgesim import Study, grid, run_study
from edgesim.analysis.differences import differences
from edgesim.base.errors import EdgesimError, NoRunFinished
from edgesim.folder import checkpoints
from edgesim.folder.records import RunWriter, read_config, read_run, read_table
from edgesim.plots.gallery import draw
from edgesim.plots.groups import knob_text
from edgesim.simulation import composition as simulation
from edgesim.studies.ledger import read_ledger
from edgesim.tables.show import print_study


def test_a_grid_names_its_runs_by_knobs_and_seed_with_seeds_innermost():
    axes = {
        "selection.policy": ["random", "fedteddi"],
        "round.tmax_s": [0.8, 1.0],
        "round.delay_knowledge": ["known"],
    }
    runs = grid({}, axes, range(2), ["round.leftover=equal_finish"])
    assert [run.folder for run in runs[:3]] == [
        "random-tmax0.8-known-s0",
        "random-tmax0.8-known-s1",
        "random-tmax1-known-s0",
    ]
    assert runs[-1].knobs == {"policy": "fedteddi", "tmax_s": 1.0, "delay_knowledge": "known"}
    assert runs[2].config.round.tmax_s == 1.0
    assert runs[2].config.seed == 0
    assert {run.config.round.leftover for run in runs} == {"equal_finish"}


RECORDED = {
    "availability": {"model": "table", "file": "sample-week"},
    "devices": {"links": {"file": "l"}},
    "radio": {"sharing": "own"},
}


@pytest.mark.parametrize(
    ("axes", "world", "names"),
    [
        ({"learning.model": "mlp", "learning.lr": 0.1}, {}, ["model", "lr"]),
        ({"learning.model": "mlp", "availability.model": "always"}, {}, ["model", "availability"]),
        ({"algorithm.name": "fedavg"}, {}, ["algorithm"]),
        (
            {"devices.count": 20, "round.admission": "count", "round.count": 5},
            {},
            ["devices", "admission", "participants"],
        ),
        (
            {"availability.after_end": "absent", "devices.links.after_end": "hold"},
            RECORDED,
            ["availability.after_end", "devices.links.after_end"],
        ),
        ({"radio.channel": "indoor", "round.close": "deadline"}, {}, ["channel", "round.close"]),
    ],
)
def test_a_knob_is_named_by_its_keys_last_part_where_that_tells_what_is_meant(axes, world, names):
    (run,) = grid(TIMING | world, {key: [value] for key, value in axes.items()}, [0], labels={"close": "mine"})
    assert list(run.knobs) == ["close", *names]


def said(study, out, **options) -> str:
    console = Console(width=300, record=True, file=io.StringIO())
    run_study(study, out, jobs=1, console=console, **options)
    return console.export_text()


def test_a_study_leaves_runs_plan_and_summary_and_reuses_what_is_finished_but_for_what_is_wanted_fresh(
    tmp_path, monkeypatch, studies_here
):
    study = Study("s", grid(TIMING, {"round.tmax_s": [0.8, 1.0]}, range(2)))
    endings = run_study(study, tmp_path, jobs=2, console=quiet())
    assert [ending.status for ending in endings.values()] == ["finished"] * 4
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert [run["folder"] for run in plan["runs"]] == [run.folder for run in study.runs]
    assert plan["runs"][2]["config"] == read_config(tmp_path / "tmax1-s0")
    assert [state.status for state in read_ledger(tmp_path).values()] == ["finished"] * 4
    summary = pd.read_csv(tmp_path / "summary.csv")
    assert summary["tmax_s"].tolist() == [0.8, 1.0]
    assert summary["seeds"].tolist() == [2, 2]

    def times():
        return [(tmp_path / run.folder / "rounds.parquet").stat().st_mtime_ns for run in study.runs]

    def refuse(*_, **__):
        raise AssertionError("the second start does what was done before")

    first = times()
    with monkeypatch.context() as patch:
        patch.setattr("edgesim.studies.pool.ProcessPool.open", refuse)
        patch.setattr("edgesim.analysis.stored_measures.measure", refuse)
        assert said(study, tmp_path).splitlines()[-1] == "4 of 4 runs reused"
    assert times() == first
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "summary.csv"), summary)
    text = said(study, tmp_path, fresh=["tmax0.8-s0"])
    assert "1 of 4 runs: finished before, run again from the start" in text
    assert text.splitlines()[-1] == "3 of 4 runs reused"
    second = times()
    assert [after > before for after, before in zip(second, first, strict=True)] == [True, False, False, False]
    text = said(study, tmp_path, fresh=True)
    assert "4 of 4 runs: finished before, run again from the start" in text
    assert "reused" not in text
    assert all(after > before for after, before in zip(times(), second, strict=True))


def test_a_run_without_a_finished_round_counts_as_none_and_the_others_are_summed_up(tmp_path, studies_here):
    periods = "".join(f"{k},500,600\n" for k in range(3))
    (tmp_path / "late.csv").write_text("device,start_s,end_s\n" + periods)
    base = TIMING | {"rounds": None, "stop_at_s": 5.0, "devices": {"count": 3}}
    table = {"availability.model": ["table"], "availability.file": [str(tmp_path / "late.csv")]}
    runs = grid(base, {"availability.model": ["always"]}, [0]) + grid(base, table, [0])
    runs[1] = replace(runs[1], folder="late-s0")
    console = Console(width=300, record=True, file=io.StringIO())
    endings = run_study(Study("s", runs), tmp_path / "out", jobs=1, console=console)
    text = console.export_text()
    assert "failed late-s0: no round was finished: stop_at_s = 5" in text
    assert "5 of 10 simulated s, 1 of 2 runs finished, 1 failed" in text
    assert {ending.status for ending in endings.values()} == {"finished", "failed"}
    assert pd.read_csv(tmp_path / "out/summary.csv")["left_out"].tolist() == [0, 1]
    again = run_study(Study("s", runs), tmp_path / "out", jobs=1, console=quiet())
    assert {name: ending.status for name, ending in again.items()} == {
        name: ending.status for name, ending in endings.items()
    }


def shown(folder, width=200) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    print_study(folder, console)
    return console.export_text()


def test_a_boolean_knob_is_summed_up_as_a_choice(tmp_path, studies_here):
    study = Study("s", grid(TIMING, {"learning.keep_best": [True, False], "round.tmax_s": [0.8]}, [0]))
    assert [run.folder for run in study.runs] == ["keepbest-true-tmax0.8-s0", "keepbest-false-tmax0.8-s0"]
    run_study(study, tmp_path, jobs=1, console=quiet())
    assert pd.read_csv(tmp_path / "summary.csv")["keep_best"].tolist() == [True, False]
    rows = [line.split()[0] for line in shown(tmp_path).splitlines() if line.split()]
    assert (rows.count("true"), rows.count("false")) == (1, 1)
    differing = differences(tmp_path, "keep_best", True)
    assert {run.knobs["keep_best"] for one in differing for run in one.runs} == {False}
    assert knob_text("keep_best", False) == "keep_best = false"


def test_none_leaves_a_key_out_and_its_knob_with_it(tmp_path, studies_here):
    runs = grid(TIMING | {"radio": {"shadowing": "per_round"}}, {"radio.shadowing": [None, "per_run"]}, [0, 1])
    assert [run.folder for run in runs] == ["s0", "s1", "per_run-s0", "per_run-s1"]
    assert [run.config.radio.shadowing for run in runs] == [None, None, "per_run", "per_run"]
    run_study(Study("s", runs), tmp_path, jobs=1, console=quiet())
    summary = pd.read_csv(tmp_path / "summary.csv")
    assert summary["shadowing"].fillna("").tolist() == ["", "per_run"]
    assert summary["seeds"].tolist() == [2, 2]


@pytest.mark.slow
@pytest.mark.usefixtures("figures_as_text")
@pytest.mark.parametrize(
    ("key", "values", "names"),
    [
        ("learning.keep_best", [True, False], {"heat_map-scheduled-true", "heat_map-scheduled-false"}),
        ("round.plan_quantile", [None, 0.9], {"heat_map-scheduled", "heat_map-scheduled-without-plan-quantile"}),
    ],
    ids=["boolean", "left out"],
)
def test_heat_maps_lie_apart_for_the_values_of_a_choice(tmp_path, studies_here, key, values, names):
    axes = {key: values, "round.tmax_s": [0.8, 1.0], "radio.bandwidth_hz": [1e7, 2e7]}
    planned = TIMING | {"round": TIMING["round"] | {"delay_knowledge": "planned"}}
    run_study(Study("s", grid(planned, axes, [0])), tmp_path, jobs=1, console=quiet())
    assert names <= {path.stem for path in draw([tmp_path], tmp_path / "plots")}


def test_values_of_numpy_are_values_like_others():
    runs = grid(TIMING, {"devices.count": np.arange(10, 30, 10), "learning.keep_best": np.array([True])}, np.arange(1))
    assert [run.folder for run in runs] == ["devices10-keepbest-true-s0", "devices20-keepbest-true-s0"]
    assert json.dumps(runs[0].knobs)


DEADLINE = {"round.tmax_s": [0.8]}
BY_DAY = {"availability.model": ["periodic", "markov"], "availability.period_s": [1e5]}


@pytest.mark.parametrize(
    ("axes", "seeds", "overrides", "words"),
    [
        ({"round.tmax_s": [], "selection.policy": ["random"]}, [0], [], "axis round.tmax_s: expected at least one"),
        ({"rounds": [[5, 5]]}, [0], [], r"axis rounds: expected texts, numbers, .* or None \(got \[5, 5\]\).*labels"),
        ({"selection.policy": "random"}, [0], [], r"axis selection.policy: expected a list .* \(got 'random'\)"),
        ({"round.tmax_s": [None]}, [], [], "seeds: expected a list of at least one seed"),
        ({"round.tmax_s": [True]}, [0], [], "round.tmax_s: input should be a valid number"),
        ({"round.tmax_s": [0.8, -1.0]}, [0], [], "run tmax-1-s0: round.tmax_s"),
        ({"selection.policy": ["random", "fedtedi"]}, [0], [], "^run fedtedi-s0: selection.policy: .*mean 'fedteddi'"),
        (BY_DAY, [0], [], r"^run markov-.*: availability.period_s: .*, or plan its runs as a grid of"),
        (DEADLINE, [0], ["devices.count=5", "learning.lr=-1"], "^set learning.lr=-1: learning.lr: input should be"),
        (DEADLINE, [0], ["selection.policy=fedcs", "selection.x=3"], "^run tmax0.8-s0: set selection.x=3: policy"),
        (DEADLINE, [0, 1], ["seed=7"], "the study itself varies"),
        (DEADLINE, [0, 1], ["round.tmax_s=2.0"], "the study itself varies"),
    ],
)
def test_a_grid_is_refused_by_the_name_of_its_axis_override_or_run(axes, seeds, overrides, words):
    with pytest.raises(EdgesimError, match=words):
        grid(TIMING, axes, seeds, overrides)


TWO_GRIDS = grid(TIMING, DEADLINE, [0]) + grid(TIMING, DEADLINE, [0, 1])


@pytest.mark.parametrize(
    ("runs", "options", "words"),
    [
        ([], {}, "study 's' has no runs"),
        (grid(TIMING, DEADLINE, [0, 0]), {}, "run tmax0.8-s0 is in the study twice"),
        (TWO_GRIDS, {}, "run tmax0.8-s0 is in the study twice"),
        (TWO_GRIDS[:1], {"target": 70}, r"target: expected an accuracy above 0 and at most 1 \(got 70"),
        (TWO_GRIDS[:1], {"target": 0.0}, r"target: expected an accuracy above 0 and at most 1 \(got 0.0"),
        (TWO_GRIDS[:1], {"reference": "randm"}, "did you mean 'random'"),
        (grid(TIMING, {"radio.channel": ["uhf"]}, [0]), {}, "radio.channel: no file 'uhf'"),
        (grid(TIMING, {"topology.file": ["uhf"]}, [0]), {}, "topology.file: no file 'uhf'"),
        (grid(TIMING, {"devices.profile": ["uhf"]}, [0]), {}, "^run uhf-s0: .*devices.profile: no file 'uhf'"),
    ],
)
@pytest.mark.whole_family
def test_a_study_is_refused_before_anything_is_made(tmp_path, runs, options, words):
    with pytest.raises(EdgesimError, match=words):
        run_study(Study("s", runs, **options), tmp_path / "out", console=quiet())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("place", "jobs", "words"),
    [
        ("out", 0, r"^jobs: expected 1 or more, or None .* \(got 0\)$"),
        ("file/study", 1, "choose another folder$"),
        ("run", 1, "not empty and not a study's folder"),
        ("thesis", 1, "not empty and not a study's folder"),
    ],
)
def test_a_study_is_refused_a_folder_that_cannot_be_its_own(tmp_path, place, jobs, words):
    (tmp_path / "file").write_text("")
    simulation.run(TWO_GRIDS[0].config, tmp_path / "run")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter1.tex").write_text("years of work")
    with pytest.raises(EdgesimError, match=words):
        run_study(Study("s", TWO_GRIDS[:1]), tmp_path / place, jobs, console=quiet())
    assert not (tmp_path / "out").exists()


def test_a_study_of_which_no_run_can_begin_says_why_once_and_leaves_nothing(tmp_path, studies_here):
    # Nobody meets 0.01 s.
    study = Study("s", grid(TIMING, {"round.tmax_s": [0.01]}, [0, 1]))
    console = Console(width=300, record=True, file=io.StringIO())
    with pytest.raises(NoRunFinished, match=r"^no run could begin; the first one: round.tmax_s = 0.01: no device can"):
        run_study(study, tmp_path / "runs/out", console=console)
    assert console.export_text().strip() == ""
    assert not (tmp_path / "runs").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(NoRunFinished):
        run_study(study, tmp_path / "mine", console=quiet())
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_study_whose_runs_began_and_failed_keeps_them(tmp_path, studies_here):
    # Three rounds of 0.8 s and more, of which the recording holds one.
    (tmp_path / "short.csv").write_text("device,start_s,end_s\n" + "\n".join(f"{k},0,1" for k in range(30)))
    world = TIMING | {"availability": {"model": "table", "file": str(tmp_path / "short.csv")}}
    study = Study("s", grid(world, {"round.tmax_s": [0.8]}, [0]))
    with pytest.raises(NoRunFinished, match=r"out: no run finished; the first one: .*the trace ends at 1 s"):
        run_study(study, tmp_path / "out", console=quiet())
    assert read_run(tmp_path / "out/tmax0.8-s0")["status"] == "failed"
    assert read_ledger(tmp_path / "out")["tmax0.8-s0"].status == "failed"


SUICIDE = """
import os, signal
from pathlib import Path
from torch import nn

def model(image_shape, class_count):
    if Path({flag!r}).exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, class_count))
"""


@pytest.mark.slow
def test_a_killed_process_fails_its_run_and_the_others_finish(tmp_path, monkeypatch):
    flag = tmp_path / "kill"
    flag.touch()
    (tmp_path / "deadly.py").write_text(SUICIDE.format(flag=str(flag)))
    monkeypatch.syspath_prepend(tmp_path)
    base = {
        "rounds": 2,
        "round": {"payload_bits": 1e7},
        "data": {"partition": "fedteddi"},
        "learning": {"pretrain": True},
    }
    study = Study("s", grid(base, {"learning.model": ["deadly.model", "mlp"]}, [0]))
    endings = run_study(study, tmp_path / "study", jobs=2, console=quiet())
    assert endings["mlp-s0"].status == "finished"
    assert endings["deadly.model-s0"].status == "failed"
    assert "killed" in endings["deadly.model-s0"].reason


UNGUARDED = """
from pathlib import Path
from edgesim import Study, grid, run_study
base = {{"rounds": 2, "learning": {{"training": "none"}}, "round": {{"payload_bits": 1e7}}}}
run_study(Study("s", grid(base, {{"round.tmax_s": [0.8, 1.0]}}, [0])), Path({out!r}), jobs=2)
"""


@pytest.mark.slow
def test_a_script_without_a_main_guard_ends_with_a_hint(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED.format(out=str(tmp_path / "study")))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "if __name__ == '__main__'" in done.stderr


LONG = """
from pathlib import Path
from edgesim.scenario import plain_errors
from edgesim import Study, grid, run_study

@plain_errors
def main():
    base = {{"rounds": 100000, "learning": {{"training": "none"}}, "data": {{"dataset": "none"}},
            "round": {{"payload_bits": 1e7}}}}
    run_study(Study("s", grid(base, {{"round.tmax_s": [0.8, 1.0, 1.2]}}, [0])), Path({out!r}), jobs=2)

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def long_study(tmp_path):
    """A study of two processes in the midst of its first two runs, which lie in ``runs``."""
    script = tmp_path / "long.py"
    script.write_text(LONG.format(out=str(tmp_path / "study")))
    process = subprocess.Popen(
        [sys.executable, str(script)], start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    runs = [tmp_path / "study" / name for name in ("tmax0.8-s0", "tmax1-s0")]
    try:
        wait_for(lambda: all((run / "rounds.arrow").exists() for run in runs), "the runs never began")
        yield process, runs
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def is_empty(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.slow
def test_a_run_of_another_process_is_left_alone_and_a_killed_study_takes_its_processes_with_it(tmp_path, long_study):
    process, runs = long_study
    config = runs[0] / "config.toml"
    before = config.stat().st_mtime_ns
    with pytest.raises(EdgesimError, match=r"tmax0.8-s0: another process is writing there .process \d+ on "):
        RunWriter(runs[0], {}, {})
    assert config.stat().st_mtime_ns == before
    ledger = read_ledger(tmp_path / "study")
    assert [state.status for state in ledger.values()] == ["running", "running", "planned"]
    assert ledger["tmax1-s0"].holder.pid != process.pid
    process.kill()
    process.wait()
    wait_for(lambda: is_empty(process.pid), "processes outlive their study")
    assert [state.status for state in read_ledger(tmp_path / "study").values()] == ["lost", "lost", "planned"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("send", "number"),
    [("killpg", "SIGINT"), ("kill", "SIGUSR1")],
)
def test_ctrl_c_and_sigusr1_save_the_runs_of_a_study_and_it_says_how_to_go_on(send, number, tmp_path, long_study):
    process, runs = long_study
    getattr(os, send)(process.pid, getattr(signal, number))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == (130 if number == "SIGINT" else 75)
    how = f"stopped; 0 of 3 runs are finished; edgesim study run {tmp_path / 'study'} resumes it"
    assert output.decode().splitlines()[-1] == how
    assert b"Traceback" not in output
    wait_for(lambda: is_empty(process.pid), "processes outlive their study")
    assert all(checkpoints.files(run) for run in runs)
    assert [state.status for state in read_ledger(tmp_path / "study").values()] == ["stopped", "stopped", "planned"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_a_second_signal_while_a_study_waits_for_its_runs_lets_them_close_their_tables(long_study):
    process, runs = long_study
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        # As a run that takes long to close its tables.
        os.kill(int(child), signal.SIGSTOP)
    for _ in range(3):
        os.kill(process.pid, signal.SIGTERM)
        time.sleep(0.5)
    assert [read_run(run)["status"] for run in runs] == ["running", "running"]
    for child in children:
        os.kill(int(child), signal.SIGCONT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 75
    assert output.splitlines()[-1].startswith(b"stopped; 0 of 3 runs are finished; edgesim study run")
    assert b"Traceback" not in output
    assert [read_run(run)["status"] for run in runs] == ["interrupted", "interrupted"]


def test_a_knob_that_only_some_runs_have_keeps_its_column(tmp_path, studies_here):
    base = TIMING | {"topology": {"file": "one-cell"}}
    flat = grid(base, {"topology.aggregation": ["flat"]}, [0])
    edge = grid(base, {"topology.aggregation": ["hierarchical"], "topology.cloud_every": [2]}, [0])
    run_study(Study("s", flat + edge), tmp_path / "out", jobs=1, console=quiet())
    assert "cloud_every scheduled" in shown(tmp_path / "out", 120)


def test_a_scenario_of_which_a_run_fails_shows_the_others_and_ends_with_a_failure(tmp_path, scenario):
    arguments = ["--seeds", "1", "--rounds", "2", "--tmax", "0.01,1.0", "--knowledge", "known"]
    done = scenario("delay_knowledge.py", *arguments, "--out", "out")
    assert done.exit_code == 1
    assert "1 of the runs did not finish, the first one: random-tmax0.01-known-s0" in done.stdout.replace("\n", " ")
    assert (tmp_path / "out/summary.csv").exists()


@pytest.mark.parametrize("links", ["rates", "over time", None])
def test_replay_takes_all_devices_of_the_file_and_their_recorded_speeds_and_links(tmp_path, scenario, links):
    periods = [f"{device},{1800 * (device % 2)},7200" for device in range(8)]
    (tmp_path / "availability.csv").write_text("\n".join(["device,start_s,end_s", *periods]))
    rates = links == "rates"
    speeds = [f"{device},0.1" + f",{1e6 * (device + 1)}" * rates for device in range(8)]
    (tmp_path / "speed.csv").write_text("\n".join(["device,s_per_sample" + ",link_bps" * rates, *speeds]))
    # Alternately nothing and twice the rate, in periods far shorter than an upload.
    rows = [f"{k},{t},{b},1" for k in range(8) for t, b in ((0, 0), (0.5, 2e6 * (k + 1)))]
    (tmp_path / "links.csv").write_text("\n".join(["device,t_s,bps,end_s", *rows]))
    arguments = ["--count", "3", "--hours", "2", "--tmax", "600", "--seeds", "1", "--target", "0.6", "--out", "out"]
    arguments += ["--links", "links.csv"] if links == "over time" else []
    done = scenario("replay.py", "availability.csv", "--profile", "speed.csv", *arguments)
    assert done.exit_code == 0, done.output
    assert "One seed each" in done.stdout
    (run,) = [path.parent for path in (tmp_path / "out").glob("*/config.toml")]
    assert read_config(run)["devices"]["count"] == 8
    # The even devices alone are there in the first half hour.
    took_part = read_table(run, "activities").query("round <= 3 and activity == 'compute'")["device"]
    assert set(took_part) <= {0, 2, 4, 6}
    uploads = read_table(run, "activities").query("activity == 'upload' and outcome == 'done'")
    recorded_s = 17_881_664.0 / (1e6 * (uploads["device"] + 1))
    assert len(uploads) > 0
    within_s = 1.0 if links == "over time" else 1e-6
    assert np.allclose(uploads["t_end_s"] - uploads["t_start_s"], recorded_s, rtol=0, atol=within_s) == bool(links)


@pytest.mark.slow
def test_a_script_from_standard_input_runs_a_study(tmp_path):
    """Processes of a study read the script that started them, which here is nowhere to be read."""
    script = (
        "import edgesim\n"
        "base = {'rounds': 1, 'learning': {'training': 'none'}, 'data': {'dataset': 'none'},\n"
        "        'round': {'payload_bits': 1e5}}\n"
        "print(len(edgesim.study(base, seeds=2, out='out', jobs=1, quiet=True).runs))\n"
    )
    done = subprocess.run(
        [sys.executable, "-"], input=script, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("2\n", "")
