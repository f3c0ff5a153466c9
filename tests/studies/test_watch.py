"""``edgesim watch``: what it shows of a study that other processes work on, and what it serves."""

import io
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest
from rich.console import Console
from small_runs import TIMING
from stopped_runs import stop_at
from two_processes import ENVIRONMENT
from typer.testing import CliRunner

from edgesim import Study, grid, run_study
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import leased
from edgesim.commands import watch_command
from edgesim.commands.cli import app
from edgesim.report.report import live_page
from edgesim.report.server import LOOPBACK, served
from edgesim.studies.ledger import read_any_ledger
from edgesim.studies.plan_file import grow
from edgesim.tables.show_ledger import ledger_table
from edgesim.tables.table_text import print_whole

# Of these tmax_s nobody meets the first.
STUDY = Study("s", grid(TIMING, {"round.tmax_s": [0.01, 0.8, 1.0, 1.2]}, [0]))
BAD, SOME, OTHER, LAST = (run.folder for run in STUDY.runs)


@pytest.fixture
def study(tmp_path, studies_here):
    """One run failed, one finished, two planned."""
    run_study(replace(STUDY, runs=STUDY.runs[:2]), tmp_path / "s", console=Console(file=io.StringIO()))
    grow(STUDY, tmp_path / "s")
    return tmp_path / "s"


def watch(*words):
    done = CliRunner().invoke(app, ["watch", *map(str, words)], env={"COLUMNS": "200"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done


def shown(ledger, room=None):
    console = Console(file=io.StringIO(), record=True, width=200)
    print_whole(console, ledger_table(ledger, room))
    return [line.split() for line in console.export_text().splitlines()]


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
    assert [row[0] for row in shown(ledger, room=3) if row][2:] == [OTHER, BAD, SOME, LAST]
    assert [row[0] for row in shown(ledger, room=4) if row][2:] == [BAD, SOME, OTHER, LAST]
    console = Console(file=io.StringIO(), record=True, width=60)
    console.print(ledger_table(ledger))
    lines = console.export_text().splitlines()
    assert len([line for line in lines if line]) == 6
    assert any(line.startswith(BAD) and line.endswith("…") for line in lines)


def test_a_study_that_has_ended_ends_the_watch_with_its_table(study):
    shutil.rmtree(study / BAD)
    run_study(replace(STUDY, runs=STUDY.runs[:2]), study, console=Console(file=io.StringIO()))
    plan = json.loads((study / "plan.json").read_text())
    plan["runs"] = plan["runs"][1:2]
    (study / "plan.json").write_text(json.dumps(plan))
    done = watch(study)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == f"{study}: 1 runs: 1 finished; 3 of 3 rounds"
    assert done.stdout.splitlines()[-1].startswith(f"{SOME} finished")
    done = watch(study / SOME)
    assert done.stdout.startswith(f"{study / SOME}: 1 finished; 3 of 3 rounds\n")


def test_a_study_with_a_failed_run_ends_with_status_1(study):
    plan = json.loads((study / "plan.json").read_text())
    plan["runs"] = plan["runs"][:2]
    (study / "plan.json").write_text(json.dumps(plan))
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
        done = watch(*words)
        assert done.exit_code == 2
        assert told in done.stderr
        assert done.stderr.count("\n") == 1
    (study / "plan.json").write_text("{")
    assert "plan.json: not valid JSON" in watch(study).stderr


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
    plan = json.loads((study / "plan.json").read_text())
    (study / "plan.json").write_text(json.dumps(plan | {"runs": plan["runs"][:2]}))
    assert 'http-equiv="refresh"' not in live_page(study, 10), "where all runs have ended the page stays as it is"
    (study / "plan.json").write_text(json.dumps(plan))
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
        while not (out / "plan.json").is_file():
            assert started.poll() is None
            time.sleep(0.05)
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
