"""A study's folder: its plan, how far its runs are, doing what is missing, and ``edgesim watch`` on what others do."""

import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from small_runs import TIMING
from stopped_runs import stop_at
from test_lease import leave
from two_processes import ENVIRONMENT
from typed_commands import edgesim, quiet, refused
from typer.testing import CliRunner
from waiting import wait_for

from edgesim import Study, grid, run_study
from edgesim.analysis.runs import read_study
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import LEASE_S, leased
from edgesim.commands import watch_command
from edgesim.commands.cli import app
from edgesim.folder.records import SCHEMA_VERSION, note_failure, read_run
from edgesim.report.report import live_page
from edgesim.report.server import LOOPBACK, served
from edgesim.simulation import composition as simulation
from edgesim.studies import dispatch, executor, running
from edgesim.studies.ledger import fingerprint, read_any_ledger, read_ledger
from edgesim.studies.plan_file import grow, read_plan
from edgesim.tables.show_ledger import headline, ledger_table
from edgesim.tables.table_text import print_whole

# Of these tmax_s nobody meets the first.
STUDY = Study("s", grid(TIMING, {"round.tmax_s": [0.01, 0.8, 1.0, 1.2]}, [0]))
BAD, SOME, OTHER, LAST = (run.folder for run in STUDY.runs)


def statuses(folder):
    return {name: state.status for name, state in read_ledger(folder).items()}


@pytest.fixture
def study(tmp_path, studies_here):
    """The folder of `STUDY`: one run failed, one finished, two planned."""
    run_study(replace(STUDY, runs=STUDY.runs[:2]), tmp_path / "s", console=quiet())
    grow(STUDY, tmp_path / "s")
    return tmp_path / "s"


def plan_alone(study, first, last):
    """Leave only some of its runs in a study's plan."""
    plan = json.loads((study / "plan.json").read_text())
    (study / "plan.json").write_text(json.dumps(plan | {"runs": plan["runs"][first:last]}))


def test_every_run_of_a_study_has_a_status_that_its_folder_tells(study):
    assert statuses(study) == {BAD: "failed", SOME: "finished", OTHER: "planned", LAST: "planned"}
    assert read_ledger(study)[BAD].reason.startswith("round.tmax_s = 0.01: no device can")
    with leased(study / OTHER):
        stop_at(STUDY.runs[3].config, study / LAST, 2)
        found = read_ledger(study)
        assert (found[OTHER].status, found[OTHER].holder.pid, found[LAST].status) == ("running", os.getpid(), "stopped")
        status, said = edgesim("study", "status", study)
        assert status == 0
        assert f"{study}: 4 runs: 1 finished, 1 running, 1 stopped, 1 failed" in said
        assert "; 5 of 12 rounds" in said
        assert f"{OTHER} running 0/3 process {os.getpid()} on" in said
        assert re.search(r"last heard of \d s ago", said)
        assert f"{BAD} failed 0/3 round.tmax_s = 0.01" in said
    # As SIGKILL leaves a run.
    path = study / LAST / "run.json"
    path.write_text(json.dumps(read_run(study / LAST) | {"status": "running"}))
    (study / OTHER).mkdir()
    leave(study / OTHER, silent_s=LEASE_S - 10)
    assert (statuses(study)[OTHER], statuses(study)[LAST]) == ("running", "lost")
    assert "lost after 60 s" in edgesim("study", "status", study)[1]
    leave(study / OTHER)
    assert statuses(study)[OTHER] == "lost"
    told = edgesim("study", "status", study)[1]
    assert "process 12 on far is gone" in told
    assert f"no process works on it; `edgesim study run {study}` resumes it" in told
    assert [state.ended for state in read_any_ledger(study).values()] == [True, True, False, False]
    path.write_text("{")
    assert read_ledger(study)[LAST].status == "damaged"
    (study / OTHER / "lease-0001.json").unlink()
    endings = run_study(STUDY, study, console=quiet())
    assert endings[LAST].reason.startswith(f"{path}: not valid JSON")
    assert statuses(study) == {BAD: "failed", SOME: "finished", OTHER: "finished", LAST: "damaged"}


def test_study_run_does_what_is_missing_and_tries_failed_runs_again_only_where_that_is_asked_for(study, monkeypatch):
    (study / OTHER).mkdir()
    leave(study / OTHER)
    ran, run_one = [], executor.run_one
    monkeypatch.setattr(executor, "run_one", lambda *given: ran.append(given[0].folder.name) or run_one(*given))
    status, said = edgesim("study", "run", study, "--jobs", 1)
    assert (status, ran) == (1, [OTHER, LAST])
    assert statuses(study) == {BAD: "failed", SOME: "finished", OTHER: "finished", LAST: "finished"}
    assert "4 runs: 3 finished, 1 failed" in said
    for command in (["study", "run", study], ["resume", study]):
        ran.clear()
        assert edgesim(*command)[0] == 1
        assert ran == []
    assert edgesim("study", "run", study, "--retry-failed")[0] == 1
    assert ran == [BAD]
    # With more time it would do.
    shutil.rmtree(study / BAD)
    plan = json.loads((study / "plan.json").read_text())
    plan["runs"][0]["config"]["round"]["tmax_s"] = 0.9
    (study / "plan.json").write_text(json.dumps(plan))
    assert edgesim("study", "run", study)[0] == 0


def test_a_study_that_was_killed_while_it_wrote_its_plan_is_begun_again(tmp_path):
    (tmp_path / "plan.json.part").write_text("{")
    grow(STUDY, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def fail(folder):
    """As another process does that tries a run."""
    with leased(folder):
        note_failure(folder, simulation.as_toml(simulation.complete(STUDY.runs[0].config)), "failed elsewhere")


def test_a_run_that_another_process_tries_in_vain_is_not_tried_by_this_one_too(tmp_path, studies_here, monkeypatch):
    def grow_and_fail(study, out):
        grow(study, out)
        fail(out / BAD)

    # The other process is at work between this one's look at the ledger and its first run, ...
    monkeypatch.setattr(running, "grow", grow_and_fail)
    endings = run_study(replace(STUDY, runs=STUDY.runs[:2]), tmp_path, console=quiet())
    assert endings[BAD].reason == read_run(tmp_path / BAD)["reason"] == "failed elsewhere"
    # ... also where the run had failed before, and both are to try it again, ...
    endings = run_study(replace(STUDY, runs=STUDY.runs[:2]), tmp_path, console=quiet())
    assert endings[BAD].reason == "failed elsewhere"
    # ... or until this one has the run's lease.
    before = fingerprint(tmp_path / BAD)
    order = executor.RunOrder(STUDY.runs[0].config, tmp_path / BAD, None, False, fingerprint=before)
    fail(tmp_path / BAD)
    assert executor.run_one(order, 1, lambda _: None).reason == "failed elsewhere"
    again = executor.run_one(replace(order, fingerprint=fingerprint(tmp_path / BAD)), 1, lambda _: None)
    assert again.reason.startswith("round.tmax_s = 0.01: no device can")


def test_seeds_and_values_that_are_given_later_are_run_and_nothing_else(tmp_path, studies_here, monkeypatch):
    def study(values, seeds):
        return Study("s", grid(TIMING, {"round.tmax_s": values}, seeds))

    run_study(study([0.8], [0]), tmp_path, console=quiet())
    ran, run_one = [], executor.run_one
    monkeypatch.setattr(executor, "run_one", lambda *given: ran.append(given[0].folder.name) or run_one(*given))
    run_study(study([0.8, 1.0], [0, 1]), tmp_path, console=quiet())
    assert ran == ["tmax0.8-s1", "tmax1-s0", "tmax1-s1"]
    endings = run_study(study([1.0], [0]), tmp_path, console=quiet())
    assert (len(ran), list(endings)) == (3, ["tmax1-s0"])
    assert len(read_study(tmp_path).finished) == 4
    assert pd.read_csv(tmp_path / "summary.csv")["seeds"].tolist() == [2, 2]
    assert [run.config for run in read_plan(tmp_path).runs] == [
        run.config for run in sorted(study([0.8, 1.0], [0, 1]).runs, key=lambda run: run.folder != "tmax0.8-s0")
    ]


def test_another_config_for_a_planned_run_and_the_same_knobs_under_another_name_are_refused(tmp_path):
    (tmp_path / "out").mkdir()
    grow(STUDY, tmp_path / "out")
    plan = (tmp_path / "out/plan.json").read_bytes()
    with pytest.raises(EdgesimError, match=r"plans run tmax0.8-s0 with another config \(rounds differs\)"):
        grow(Study("s", grid(TIMING | {"rounds": 2}, {"round.tmax_s": [0.8]}, [0])), tmp_path / "out")
    with pytest.raises(EdgesimError, match=r"holds another study, over tmax_s"):
        grow(Study("s", grid(TIMING, {"devices.count": [10]}, [0])), tmp_path / "out")
    with pytest.raises(EdgesimError, match=r"runs tmax0.8-s0 and twin have the same knobs and seed"):
        grow(replace(STUDY, runs=[replace(STUDY.runs[1], folder="twin")]), tmp_path / "out")
    assert (tmp_path / "out/plan.json").read_bytes() == plan
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["plan.json"]


def test_a_study_without_runs_may_begin_twice_and_behind_one_that_has_runs(tmp_path):
    """Two processes begin one tuning at once; either may be first, and the first may be further already."""
    none = replace(STUDY, runs=[])
    grow(none, tmp_path)
    grow(none, tmp_path)
    assert read_plan(tmp_path).runs == []
    grow(STUDY, tmp_path)
    grow(none, tmp_path)
    assert [run.folder for run in read_plan(tmp_path).runs] == [run.folder for run in STUDY.runs]


def test_the_table_is_there_at_any_time_from_what_is_finished(tmp_path, studies_here):
    grow(replace(STUDY, runs=STUDY.runs[1:]), tmp_path)
    assert refused("study", "table", tmp_path).startswith(f"error: {tmp_path}: no run of the study is finished")
    simulation.run(STUDY.runs[2].config, tmp_path / OTHER)
    status, said = edgesim("study", "table", tmp_path)
    assert status == 0
    summary = pd.read_csv(tmp_path / "summary.csv")
    assert summary["seeds"].tolist() == [0, 1, 0]
    assert summary["left_out"].tolist() == [1, 0, 1]
    assert "scheduled" in said


def test_a_study_of_the_layout_before_plans_is_refused_in_a_line(tmp_path, studies_here):
    run_study(replace(STUDY, runs=STUDY.runs[1:2]), tmp_path, console=quiet())
    (tmp_path / "plan.json").rename(tmp_path / "study.json")
    for words in (("resume", tmp_path), ("study", "run", tmp_path)):
        assert re.match(f"error: {tmp_path}: .*is missing", refused(*words))
    with pytest.raises(EdgesimError, match="is not empty and not a study's folder"):
        grow(STUDY, tmp_path)


def test_runs_that_another_process_works_on_are_waited_for_and_taken_over_where_it_is_lost(
    tmp_path, studies_here, monkeypatch
):
    """The other one finishes the first, fails in the second, and is lost in the third."""
    study = replace(STUDY, runs=[*STUDY.runs[1:], replace(STUDY.runs[0], folder="free", knobs={"tmax_s": 2.0})])
    study.runs[3] = replace(study.runs[3], config=study.runs[0].config)
    grow(study, tmp_path)
    for name in (SOME, OTHER, LAST):
        (tmp_path / name).mkdir()
        leave(tmp_path / name, silent_s=1)
    looks = []

    def sleep(seconds):
        looks.append(statuses(tmp_path))
        for name in (SOME, OTHER):
            for path in (tmp_path / name).glob("lease-*"):
                path.unlink()
        if len(looks) == 1:
            simulation.run(study.runs[0].config, tmp_path / SOME)
            (tmp_path / OTHER / "config.toml").write_bytes((tmp_path / SOME / "config.toml").read_bytes())
            facts = {"schema_version": SCHEMA_VERSION, "status": "failed", "reason": "no luck"}
            (tmp_path / OTHER / "run.json").write_text(json.dumps(facts))
        else:
            leave(tmp_path / LAST)

    monkeypatch.setattr(dispatch.time, "sleep", sleep)
    console = Console(file=io.StringIO(), record=True, width=200)
    endings = run_study(study, tmp_path, console=console)
    assert looks[0] == {SOME: "running", OTHER: "running", LAST: "running", "free": "finished"}
    assert len(looks) == 2
    assert {name: ending.status for name, ending in endings.items()} == {
        SOME: "finished", OTHER: "failed", LAST: "finished", "free": "finished"
    }  # fmt: skip
    assert endings[OTHER].reason == "no luck"
    assert "other processes work on 3 of the runs; waiting for them" in console.export_text()


def test_the_ledger_of_a_run_that_seconds_end_has_its_rounds_and_its_seconds(tmp_path, studies_here):
    values = {key: value for key, value in TIMING.items() if key != "rounds"} | {"stop_at_s": 2.5}
    (run,) = grid(values, {"round.tmax_s": [0.8]}, [0])
    run_study(Study("s", [run]), tmp_path, console=quiet())
    (state,) = read_any_ledger(tmp_path).values()
    assert (state.done, state.of, state.of_s) == (3, None, 2.5)
    assert 2.0 < state.t_s <= 2.5


@pytest.mark.parametrize(
    ("ends", "counted"),
    [({"stop_at_s": 2.5}, "6 of 6 simulated s"), ({"rounds": 9, "stop_at_s": 2.5}, "6 of 6 rounds")],
    ids=["by seconds", "by rounds, which the clock ends early"],
)
def test_the_progress_of_a_study_ends_with_the_count_that_its_tables_have(tmp_path, studies_here, ends, counted):
    """Rounds of 0.8 s: the last one ends at 2.4 s, before the run does."""
    values = {key: value for key, value in TIMING.items() if key != "rounds"} | ends
    console = Console(file=io.StringIO(), record=True, width=200)
    run_study(Study("s", grid(values, {"round.tmax_s": [0.8]}, [0, 1])), tmp_path, console=console)
    (last,) = [line for line in console.export_text().splitlines() if "runs finished" in line]
    assert f"{counted}, 2 of 2 runs finished" in last
    assert headline(tmp_path, read_any_ledger(tmp_path)).endswith(f"; {counted}")


def watch(*words):
    done = CliRunner().invoke(app, ["watch", *map(str, words)], env={"COLUMNS": "200"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done


def shown(ledger, room=None):
    console = Console(file=io.StringIO(), record=True, width=200)
    print_whole(console, ledger_table(ledger, room))
    return [line.split()[0] for line in console.export_text().splitlines() if line][2:]


def test_rounds_of_a_run_are_counted_while_it_goes_on(study):
    """The second look reads the table again, since it has grown."""
    stop_at(STUDY.runs[3].config, study / LAST, 1)
    before = read_any_ledger(study)[LAST].done
    stop_at(STUDY.runs[3].config, study / LAST, 2)
    assert (before, read_any_ledger(study)[LAST].done) == (1, 2)


def test_a_table_that_is_removed_while_it_is_looked_for_does_not_end_the_watch(study, monkeypatch):
    # As when a run ends in between, which puts a table of another name in its place.
    is_file = Path.is_file
    monkeypatch.setattr(Path, "is_file", lambda self: self.name == "rounds.arrow" or is_file(self))
    assert {name: state.done for name, state in read_any_ledger(study).items()} == {BAD: 0, SOME: 3, OTHER: 0, LAST: 0}


def test_where_there_is_little_room_the_runs_that_matter_now_are_shown_first_and_in_a_line_each(study):
    with leased(study / OTHER):
        ledger = read_any_ledger(study)
    assert shown(ledger, room=3) == [OTHER, BAD, SOME, LAST]
    assert shown(ledger, room=4) == [BAD, SOME, OTHER, LAST]
    console = Console(file=io.StringIO(), record=True, width=60)
    console.print(ledger_table(ledger))
    lines = console.export_text().splitlines()
    assert len([line for line in lines if line]) == 6
    assert any(line.startswith(BAD) and line.endswith("…") for line in lines)


def test_a_study_that_has_ended_ends_the_watch_with_its_table(study):
    plan_alone(study, 1, 2)
    done = watch(study)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == f"{study}: 1 runs: 1 finished; 3 of 3 rounds"
    assert done.stdout.splitlines()[-1].startswith(f"{SOME} finished")
    done = watch(study / SOME)
    assert done.stdout.startswith(f"{study / SOME}: 1 finished; 3 of 3 rounds\n")


def test_a_study_with_a_failed_run_ends_with_status_1(study):
    plan_alone(study, 0, 2)
    done = watch(study, "--log")
    assert done.exit_code == 1
    assert "round.tmax_s = 0.01: no device can compute and upload" in done.stdout


def test_bad_input_is_one_line(study, tmp_path, taken_port):
    facts = json.loads((study / SOME / "run.json").read_text())
    (study / SOME / "run.json").write_text(json.dumps(facts | {"schema_version": 99}))
    assert read_any_ledger(study)[SOME].status == "damaged"
    (tmp_path / "empty").mkdir()
    for words, told in (
        ([tmp_path / "absent"], "no such folder"),
        ([tmp_path / "empty"], "run.json is missing"),
        ([study / "plan.json"], "is a file"),
        ([study / SOME], "schema_version is 99, made by a newer edgesim"),
        ([study, "--port", 8000], "--port: is for --web"),
        (
            [study, "--web", "--port", taken_port],
            f"error: port {taken_port} of 127.0.0.1 is in use; ",
        ),
    ):
        assert told in refused("watch", *words)
    (study / "plan.json").write_text("{")
    assert "plan.json: not valid JSON" in refused("watch", study)


@pytest.fixture
def taken_port():
    with socket.create_server((LOOPBACK, 0)) as taken:
        yield taken.getsockname()[1]


def fetch(port, path="/", host=None):
    connection = HTTPConnection(LOOPBACK, port, timeout=60)
    connection.request("GET", path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_page_alone_is_served_and_on_the_loopback_address_alone():
    with served(lambda: "<p>é", 0) as url:
        port = int(re.fullmatch(rf"http://{LOOPBACK}:(\d+)/", url)[1])
        assert fetch(port) == (200, "<p>é")
        assert fetch(port, "/?again", f"localhost:{port}") == (200, "<p>é")
        for path in ("/plan.json", "/../", "/%2e%2e/"):
            assert fetch(port, path)[0] == 404
        assert fetch(port, host="a-site.example")[0] == 403
        # The whole of 127.0.0.0/8 is this machine's, so another address of it stands for another interface.
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", port), timeout=5):
            pass
        with pytest.raises(EdgesimError, match=rf"port {port} of 127.0.0.1 is in use; give another one"):
            served(lambda: "", port).__enter__()
    with pytest.raises(ConnectionRefusedError):
        fetch(port)


def without_headings(page):
    """The page without the heading that each cell of a table repeats for narrow screens."""
    return re.sub(r' data-of="[^"]*"', "", page)


@pytest.mark.slow
def test_the_page_has_the_runs_that_go_on_and_the_report_of_those_that_are_finished(study):
    page = live_page(study, 10)
    assert '<meta http-equiv="refresh" content="10">' in page
    assert f'<th scope="row">{OTHER}</th><td>planned</td><td class=number>0/3</td>' in without_headings(page)
    assert 'id="timeline"' in page
    plan = (study / "plan.json").read_bytes()
    plan_alone(study, 0, 2)
    assert 'http-equiv="refresh"' not in live_page(study, 10), "where all runs have ended the page stays as it is"
    (study / "plan.json").write_bytes(plan)
    shutil.rmtree(study / SOME)
    page = live_page(study, 10)
    assert "No report yet: " in page
    assert "no run of the study is finished" in page
    assert '<meta http-equiv="refresh" content="10">' in page


GROWING = """
from edgesim import Study, grid, run_study
from pathlib import Path

if __name__ == "__main__":
    base = {"rounds": 1500, "learning": {"training": "none"}, "data": {"dataset": "none"},
            "round": {"payload_bits": 1e7}}
    run_study(Study("s", grid(base, {"round.tmax_s": [0.01, 0.8]}, [0])), Path("out"), jobs=1)
"""


@pytest.mark.slow
def test_a_study_of_another_process_is_watched_to_its_end(tmp_path, monkeypatch):
    (tmp_path / "growing.py").write_text(GROWING)
    started = subprocess.Popen([sys.executable, "growing.py"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    for name, value in (("_BETWEEN_LINES_S", 0.2), ("_BETWEEN_LOOKS_S", 0.1), ("_REFRESH_S", 1.5), ("_PORT", 0)):
        monkeypatch.setattr(watch_command, name, value)
    said = io.StringIO()
    monkeypatch.setattr(watch_command, "say", lambda line: print(line, file=said))
    out = tmp_path / "out"
    try:
        wait_for((out / "plan.json").is_file, "it never began", started)
        done = watch(out, "--web")
    finally:
        started.kill()
        started.wait()
    assert done.exit_code == 1, "one run failed"
    assert f"http://{LOOPBACK}:" in said.getvalue()
    lines = [line for line in done.stdout.splitlines() if line.startswith(f"{out}: 2 runs")]
    assert any("1 running" in line for line in lines)
    assert lines[-1] == f"{out}: 2 runs: 1 finished, 1 failed; 1,500 of 3,000 rounds"
    rounds = [int(re.search(r"; ([\d,]+) of", line)[1].replace(",", "")) for line in lines]
    assert rounds == sorted(rounds)
    assert len(set(rounds)) > 2, rounds


@pytest.mark.slow
def test_ctrl_c_ends_the_watch_without_a_word(study):
    command = [sys.executable, "-m", "edgesim", "watch", str(study)]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(f"{study}: 4 runs: 1 finished, 2 planned, 1 failed")
    process.send_signal(2)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
