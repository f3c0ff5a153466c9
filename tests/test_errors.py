"""What a message repeats of the input, and the files and folders that it takes for each other."""

from pathlib import Path

import pytest
import tomli_w
from typer.testing import CliRunner

import edgesim
from edgesim.base.content import find
from edgesim.base.errors import EdgesimError, shortened
from edgesim.commands.cli import app
from edgesim.config_file import parse


def test_a_long_word_is_cut_in_its_middle_and_says_how_long_it_was():
    assert shortened(f"key: unknown {'x' * 5000} ; give another") == (
        f"key: unknown {'x' * 80}...(5,000 characters)...{'x' * 40} ; give another"
    )
    assert shortened("x" * 200) == "x" * 200


def test_a_message_of_many_words_is_cut_in_its_middle_and_ends_as_it_did():
    text = "abcdefghi " * 1000 + "; give another"
    assert shortened(text) == f"{text[:1000]}...(10,014 characters)...{text[-500:]}"
    assert shortened("word " * 400) == "word " * 400


@pytest.mark.parametrize("value", ["x" * 5000, "a b " * 5000, "9" * 4000, "\x1b[31m" * 1000])
@pytest.mark.parametrize(
    "place", ["learning.model", "radio.channel", "availability.model", "selection.policy", "data.dataset", "rounds"]
)
def test_a_value_of_thousands_of_letters_is_not_repeated_whole(place, value):
    section, _, key = place.partition(".")
    with pytest.raises(EdgesimError) as error:
        _played({section: {key: value} if key else value})
    assert len(str(error.value)) < 2_100
    assert "characters)..." in str(error.value)


def _played(values: dict[str, object]) -> None:
    from edgesim.simulation import composition as simulation

    learning = {"training": "real", "pretrain": True} | dict(values.pop("learning", {}))  # type: ignore[call-overload]
    data = {"dataset": "digits", "partition": "fedteddi"} | dict(values.pop("data", {}))  # type: ignore[call-overload]
    simulation.run(parse(values | {"learning": learning, "data": data}, "test"), Path("/nonexistent/run"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "folder.toml"], "error: folder.toml: is a folder; expected a file"),
        (["run", "."], "error: .: is a folder; expected a file"),
        (
            ["trace", "show", "folder.csv"],
            "error: traces: 'folder.csv' is a folder, not a file; give a path or one of: ",
        ),
        (["show", "file"], "error: file: not a run folder: it is a file"),
        (["plot", "file"], "error: file: is a file; give run folders or one study folder"),
    ],
)
def test_a_folder_for_a_file_and_a_file_for_a_folder_are_named_as_such(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("folder.toml", "folder.csv"):
        Path(name).mkdir()
    Path("file").touch()
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert result.output.startswith(said)


@pytest.mark.parametrize("kind", ["channels", "topologies", "traces"])
def test_content_that_is_a_folder_is_named_as_such(kind, tmp_path):
    with pytest.raises(EdgesimError, match=f"^{kind}: '.*' is a folder, not a file;"):
        find(kind, str(tmp_path), ".toml")


TIMING = {"rounds": 1, "learning": {"training": "none"}, "data": {"dataset": "none"}, "round": {"payload_bits": 1e5}}
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
def test_a_call_from_python_and_a_command_are_refused_in_the_same_words(tmp_path, monkeypatch, call, words, said):
    pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(tomli_w.dumps(TIMING))
    with pytest.raises(EdgesimError) as refused:
        call(tmp_path / "out")
    assert str(refused.value).startswith(said)
    assert "--" not in str(refused.value)
    typed = CliRunner().invoke(app, words)
    # The command says --set for the argument set.
    option = "--" * (said.partition(" ")[0] in ("set", "trials", "knob"))
    assert (typed.exit_code, typed.stderr) == (2, f"error: {option}{refused.value}\n")
