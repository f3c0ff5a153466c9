"""Names of files and folders that no system can have: one line, whatever they are given for."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edgesim.commands.cli import app

CONFIG = """
rounds = 2
[round]
payload_bits = 17881664.0
tmax_s = 0.8
[data]
dataset = "digits"
partition = "fedteddi"
[learning]
training = "none"
pretrain = true
"""
NAMES = {
    "empty": "", "long": "a" * 300, "deep": "a/" * 3000, "nul": "x\0y", "bytes": "\udcff", "two lines": "x\ny",
    "nobody's": "~nobody-here/x", "nul npz": "x\0.npz", "long npz": "x" * 300 + ".npz", "dots": "..", "nul.": "a\0.b",
}  # fmt: skip
KEYS = {
    "radio.channel": [], "topology.file": [], "devices.profile": [], "availability.file": ["availability.model=table"],
    "data.dataset": [], "data.folder": ["data.dataset=cifar10"], "devices.links.file": ["radio.sharing=own"],
    "learning.model": ["learning.training=real"], "data.partition_options.file": ["data.partition=listed"],
}  # fmt: skip
COMMANDS = [
    ["run", "NAME"], ["run", "run.toml", "--out", "NAME"], ["show", "NAME"], ["plot", "NAME"], ["plot", "NAME", "one"],
    ["trace", "show", "NAME"], ["trace", "show", "week.csv", "--lengths", "NAME"], ["trace", "fetch", "NAME"],
    ["trace", "show", "week.csv", "--observed", "NAME"], ["trace", "show", "week.csv", "--out", "NAME"],
    ["trace", "convert", "NAME", "o.parquet"], ["trace", "convert", "week.csv", "NAME"],
    ["trace", "convert", "week.csv", "NAME.parquet"], ["trace", "convert", "week.csv", "NAME", "o.parquet"],
]  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(CONFIG)
    Path("week.csv").write_text("device,start_s,end_s\n0,0,1\n")


def outcome(*arguments: str) -> tuple[int, list[str]]:
    """Status, and the lines of the error; fails for a traceback."""
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    lines = result.output.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("error: ")), len(lines))
    return result.exit_code, lines[first:]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_config_with_an_impossible_name_is_refused_in_one_line(key, name):
    settings = [f"{key}={json.dumps(name)}", *KEYS[key]]
    status, error = outcome("run", "run.toml", *(part for setting in settings for part in ("--set", setting)))
    assert (status, len(error)) == (2, 1)
    # A model's name is no path and is told whole.
    assert len(error[0]) < 700 or key == "learning.model"
    assert not Path("runs").exists()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
# No system lets a NUL into the words of a command.
@pytest.mark.parametrize("name", [name for name in NAMES.values() if "\0" not in name])
def test_a_command_with_an_impossible_name_is_refused_in_one_line(command, name):
    status, error = outcome(*(part.replace("NAME", name) for part in command))
    # Some of the names are possible ones for what is to be written.
    assert (status, len(error)) in ((2, 1), (0, 0)) or (status == 2 and not error)


@pytest.mark.parametrize("name", ["a" * 300, "x\ny", "\udcff"])
@pytest.mark.parametrize("command", [["show"], ["plot"], ["run"], ["run", "run.toml", "--out"], ["trace", "show"]])
def test_the_line_says_what_was_expected_and_shows_the_name(command, name):
    status, (line,) = outcome(*command, name)
    assert status == 2
    assert "expected a path " in line
    assert f", {len(name)} characters" in line


def test_a_file_that_has_no_room_for_a_longer_name_beside_it_is_one_line():
    status, error = outcome("trace", "convert", "week.csv", "a" * 245 + ".parquet")
    assert (status, len(error)) == (2, 1)
    assert error[0].endswith("cannot be written: File name too long")


@pytest.mark.parametrize("folder", ["/dev/null", "/dev/null/x"])
def test_figures_cannot_lie_below_a_file(folder):
    status, (line,) = outcome("trace", "show", "week.csv", "--out", folder)
    assert (status, line.split(":")[1]) == (2, f" {folder}")


def test_a_folder_may_begin_with_a_tilde():
    assert outcome("run", "run.toml", "--out", "~nobody-here")[0] == 0
    assert Path("~nobody-here/run.json").is_file()
