"""What is refused is one line, whatever of files, names, arguments and long or odd values it repeats."""

import json
import shutil
from pathlib import Path

import pytest
import tomli_w
from refusals import in_one_line
from small_runs import TIMING
from typed_commands import edgesim_lines
from typer.testing import CliRunner

import edgesim
from edgesim import EdgesimError, PlannedRun, Study, grid, run_study
from edgesim.analysis.runs import read_study
from edgesim.base.content import find
from edgesim.base.errors import Contradiction, shortened
from edgesim.base.lease import Lease, Taken
from edgesim.commands.cli import app
from edgesim.config_file import parse
from edgesim.simulation import composition as simulation

VALUES = TIMING | {"devices": {"count": 5}}
EVIL = "one\ntwo\x1b[2J\r\u2028three"
NAMES = {
    "empty": "", "long": "a" * 300, "deep": "a/" * 3000, "nul": "x\0y", "bytes": "\udcff", "two lines": "x\ny",
    "nobody's": "~nobody-here/x", "nul npz": "x\0.npz", "long npz": "x" * 300 + ".npz", "dots": "..",
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
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(tomli_w.dumps(VALUES | {"data": {"dataset": "digits", "partition": "fedteddi"}}))
    Path("week.csv").write_text("device,start_s,end_s\n0,0,1\n")


def outcome(*words):
    """Status, and the lines of the error; fails for a traceback."""
    status, output = edgesim_lines(*words)
    lines = output.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("error: ")), len(lines))
    return status, lines[first:]


@pytest.mark.parametrize("key", KEYS)
def test_a_config_with_an_impossible_name_is_refused_in_one_line(key):
    for name in NAMES.values():
        settings = [f"{key}={json.dumps(name)}", *KEYS[key]]
        status, error = outcome("run", "run.toml", *(part for setting in settings for part in ("--set", setting)))
        assert (status, len(error)) == (2, 1), name
        # A model's name is no path and is told whole.
        assert len(error[0]) < 700 or key == "learning.model"
        assert not Path("runs").exists()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_with_an_impossible_name_is_refused_in_one_line(command):
    # No system lets a NUL into the words of a command.
    for name in (name for name in NAMES.values() if "\0" not in name):
        status, error = outcome(*(part.replace("NAME", name) for part in command))
        # Some of the names are possible ones for what is to be written.
        assert (status, len(error)) in ((2, 1), (0, 0)) or (status == 2 and not error), name


def test_the_line_says_what_was_expected_and_shows_the_name():
    for name in ("a" * 300, "x\ny", "\udcff"):
        for command in (["show"], ["plot"], ["run"], ["run", "run.toml", "--out"], ["trace", "show"]):
            status, (line,) = outcome(*command, name)
            assert status == 2
            assert "expected a path " in line
            assert f", {len(name)} characters" in line


def test_a_file_that_has_no_room_for_a_longer_name_beside_it_is_one_line():
    status, (line,) = outcome("trace", "convert", "week.csv", "a" * 245 + ".parquet")
    assert (status, line.endswith("cannot be written: File name too long")) == (2, True)


def test_a_folder_may_begin_with_a_tilde():
    assert outcome("run", "run.toml", "--out", "~nobody-here")[0] == 0
    assert Path("~nobody-here/run.json").is_file()


def test_what_is_long_is_cut_in_its_middle_and_says_how_long_it_was():
    assert shortened(f"key: unknown {'x' * 5000} ; give another") == (
        f"key: unknown {'x' * 80}...(5,000 characters)...{'x' * 40} ; give another"
    )
    text = "abcdefghi " * 1000 + "; give another"
    assert shortened(text) == f"{text[:1000]}...(10,014 characters)...{text[-500:]}"
    for short in ("x" * 200, "word " * 400):
        assert shortened(short) == short


@pytest.mark.parametrize("value", ["x" * 5000, "a b " * 5000, "9" * 4000, "\x1b[31m" * 1000])
def test_a_value_of_thousands_of_letters_is_not_repeated_whole(value):
    base = {"learning": {"training": "real", "pretrain": True}, "data": {"dataset": "digits", "partition": "fedteddi"}}
    for key in ("learning.model", "radio.channel", "availability.model", "selection.policy", "data.dataset", "rounds"):
        with pytest.raises(EdgesimError) as error:
            edgesim.run(base, "run", {key: value})
        assert len(str(error.value)) < 2_100
        assert "characters)..." in str(error.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run folder.toml", "folder.toml: is a folder; expected a file"),
        ("run .", ".: is a folder; expected a file"),
        ("trace show folder.csv", "traces: 'folder.csv' is a folder, not a file; give a path or one of: "),
        ("trace show week.csv --out week.csv", "week.csv"),
        ("show week.csv", "week.csv: not a run folder: it is a file"),
        ("plot week.csv", "week.csv: is a file; give run folders or one study folder"),
    ],
)
@pytest.mark.whole_family
def test_a_folder_for_a_file_and_a_file_for_a_folder_are_named_as_such(words, said):
    for name in ("folder.toml", "folder.csv"):
        Path(name).mkdir()
    status, (line,) = outcome(*words.split())
    assert (status, line.startswith(f"error: {said}")) == (2, True)
    for kind in ("channels", "topologies", "traces"):
        with pytest.raises(EdgesimError, match=f"^{kind}: '.*' is a folder, not a file;"):
            find(kind, str(Path.cwd()), ".toml")


KNOB = {"round.tmax_s": (0.5, 1.0)}


@pytest.mark.parametrize(
    ("call", "words", "said"),
    [
        (
            lambda out: edgesim.run("run.toml", out, {"round.tmx": 1}),
            ["run", "run.toml", "--set", "round.tmx=1"],
            "set round.tmx=1: unknown key 'round.tmx', did you mean 'round.tmax_s'?",
        ),
        (
            lambda out: edgesim.tune("run.toml", KNOB, "energy-j", 0, out),
            ["tune", "run.toml", "--knob", "round.tmax_s=0.5:1.0", "--objective", "energy-j", "--trials", "0"],
            "trials 0: expected 1 or more",
        ),
        (
            lambda out: edgesim.tune("run.toml", {"round.x": (1, 2)}, "energy-j", 1, out),
            ["tune", "run.toml", "--knob", "round.x=1:2", "--objective", "energy-j"],
            "knob round.x: unknown key 'round.x'",
        ),
        (
            lambda _: edgesim.run("run.toml", "run.toml"),
            ["run", "run.toml", "--out", "run.toml"],
            "run.toml: is a file, not a folder; choose another folder",
        ),
    ],
)
def test_a_call_from_python_and_a_command_are_refused_in_the_same_words(tmp_path, call, words, said):
    pytest.importorskip("optuna")
    with pytest.raises(EdgesimError) as refused:
        call(tmp_path / "out")
    assert str(refused.value).startswith(said)
    assert "--" not in str(refused.value)
    typed = CliRunner().invoke(app, words)
    # The command says --set for the argument set.
    option = "--" * (said.partition(" ")[0] in ("set", "trials", "knob"))
    assert (typed.exit_code, typed.stderr) == (2, f"error: {option}{refused.value}\n")


@pytest.mark.parametrize("kind", [EdgesimError, Contradiction, Taken])
def test_an_error_holds_no_line_breaks_and_nothing_that_steers_a_terminal(kind):
    assert str(kind(f"file: {EVIL}", "round.tmax_s")) == r"file: one\ntwo\x1b[2J\r\u2028three"


@pytest.mark.parametrize("policy", ["refl", "feddance", "random"])
def test_a_predictor_that_is_no_text_is_one_line(policy):
    for value in (2, True, ["arima"], {"name": "arima"}, 0.5):
        with in_one_line(r"selection\.predictor: "):
            edgesim.run(VALUES | {"selection": {"policy": policy, "predictor": value}}, "run", quiet=True)
        assert not Path("run").exists()


def test_a_folder_that_is_removed_while_its_run_goes_on_is_told_as_that():
    with pytest.raises(EdgesimError, match="run: the folder was removed during its run; nothing more is") as told:
        simulation.run(parse(VALUES, "test"), Path("run"), lambda _: shutil.rmtree("run", ignore_errors=True))
    assert not isinstance(told.value, Taken)
    assert not Path("run").exists()


def test_a_lease_that_is_gone_from_a_folder_was_taken_over(tmp_path):
    lease = Lease(tmp_path)
    (tmp_path / "lease-0001.json").unlink()
    with pytest.raises(Taken, match="another process has resumed it"):
        lease.check()


@pytest.mark.parametrize("name", [EVIL, "a/b", "..", ".", "", "x" * 300])
def test_a_run_of_a_study_has_the_name_of_a_folder(name, tmp_path):
    (run,) = grid(VALUES, {}, [1])
    with in_one_line("the folder of a run: expected "):
        run_study(Study("s", [PlannedRun(name, {}, 1, run.config)]), tmp_path / "study")
    assert not (tmp_path / "study").exists()
    planned = [{"folder": name, "knobs": {}, "seed": 1, "config": {}}]
    plan = {"name": "s", "target": None, "reference": "random", "runs": planned}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with in_one_line(r"plan\.json: runs\[0\]: folder: expected "):
        read_study(tmp_path)
