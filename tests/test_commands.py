"""Commands beside running: what a run would be, progress as lines, readers that leave."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typed_commands import refused
from typer.testing import CliRunner

import edgesim
from edgesim.commands.cli import app

CONFIG = """
rounds = 2
[devices]
count = 12
[round]
payload_bits = 17881664.0
tmax_s = 0.8
[data]
dataset = "none"
partition = "fedteddi"
[learning]
training = "none"
pretrain = true
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(CONFIG)


def test_a_dry_run_says_what_the_run_is_and_writes_nothing():
    done = CliRunner().invoke(app, ["run", "run.toml", "--dry-run", "--set", "seed=3"])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["run.toml"]
    text, _, facts = done.output.partition("folder: ")
    edgesim.run("run.toml", "out", {"seed": 3})
    assert text.strip() == Path("out/config.toml").read_text().strip()
    assert tomllib.loads(text)["seed"] == 3
    assert facts.startswith("runs/run (new)\npayload: 17,881,664 bits up and 17,881,664 down, per device\n")


def test_the_first_round_of_a_dry_run_is_that_of_the_run():
    """As many devices fit the band by their least bandwidths as no policy exceeds."""
    narrow = {"round.tmax_s": 0.4, "radio.bandwidth_hz": 8e6}
    told = edgesim.dry_run("run.toml", set=narrow).facts["first round"]
    run = edgesim.run("run.toml", "out", narrow)
    first = run.rounds.iloc[0]
    parts = told, told.split(" s, ")[1], told.split("deadline, ")[1]
    there, in_time, at_once = (int(part.split()[0]) for part in parts)
    assert there == first["candidates"] == 12
    infeasible = run.metrics.query("round == 1 and name == 'infeasible_share'")["value"].item()
    assert 0 < in_time == round(12 * (1 - infeasible)) < 12
    assert first["selected"] <= at_once <= in_time


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("round.tmax_s=0.001", "no device can compute and upload"),
        ("selection.policy=best-norm", "needs learning.training = 'real', not 'none': it needs sent_norms"),
    ],
)
def test_a_dry_run_of_what_would_be_refused_says_why_and_nothing_else(setting, said):
    line = refused("run", "run.toml", "--dry-run", "--set", setting)
    assert line.startswith("error: would be refused: ")
    assert said in line
    assert not Path("runs").exists()


def test_a_dry_run_downloads_nothing(monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a dry run opened a connection")

    monkeypatch.setattr("socket.socket.connect", refuse)
    Path("run.toml").write_text(CONFIG.replace('"none"\npartition', '"cifar10"\ndownload = true\npartition'))
    done = CliRunner().invoke(app, ["run", "run.toml", "--dry-run"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1].startswith("data: cifar10 in data: files are missing")
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["run.toml"]


def test_a_dry_run_knows_the_folder_it_would_meet_and_keeps_two_refusals_apart():
    told = CliRunner().invoke(app, ["run", "run.toml", "--dry-run", "--set", "stop_at_s=1"]).stdout
    assert "stop_at_s = 1 are both given: whichever comes first ends the run" in told
    edgesim.run("run.toml")
    assert edgesim.dry_run("run.toml").facts["folder"] == "runs/run (finished, would be reused)"
    (refused,) = edgesim.dry_run("run.toml", set={"seed": 5, "rounds": 9}).refused
    assert "holds a run of another config (seed differs)" in refused
    done = CliRunner().invoke(app, ["run", "run.toml", "--dry-run", "--set", "round.tmax_s=0.001"])
    first, second = done.stderr.removeprefix("error: would be refused: ").split("; and for another reason: ")
    assert "holds a run of another config (round.tmax_s differs)" in first
    assert "no device can compute and upload" in second


@pytest.mark.parametrize("training", ["real", "none"])
def test_memory_is_told_of_training_alone(training):
    algorithm = "mifa" if training == "real" else "fedavg"
    more = {"learning.training": training, "data.dataset": "digits", "algorithm.name": algorithm}
    told = edgesim.dry_run("run.toml", set=more).facts["memory"]
    # The MLP of digits has 2,410 parameters of 4 bytes.
    assert ("12 updates of 0.00964 MB" in told) == (training == "real")
    assert ("remembered of each device" in told) == (training == "real")


@pytest.mark.slow
@pytest.mark.parametrize("command", [["list"], ["show", "out"]])
def test_a_reader_that_leaves_ends_the_command_without_a_word(command):
    edgesim.run("run.toml", "out")
    process = subprocess.Popen(
        [sys.executable, "-m", "edgesim", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() in (1, 141)


@pytest.mark.parametrize(("option", "lines"), [("--log", True), ("--no-log", False)])
def test_progress_as_lines_can_be_asked_for(monkeypatch, option, lines):
    monkeypatch.setattr("edgesim.screen.progress._SECONDS_BEFORE_LINES", 0.0)
    done = CliRunner().invoke(app, ["run", "run.toml", option])
    assert done.exit_code == 0
    assert ("random 1 of 2" in done.stderr) == lines
    assert json.loads(Path("runs/run/run.json").read_text())["status"] == "finished"
