"""Files of text, TOML and JSON that cannot be read: one line that names the file, without a library's own words."""

import os
from pathlib import Path

import pytest
from refusals import in_one_line
from typer.testing import CliRunner

from edgesim.base.errors import EdgesimError
from edgesim.base.text_file import read_json, read_text, read_toml
from edgesim.commands.cli import app

BROKEN = {
    "broken.toml": b"seed = 1\nrounds = = 2\n",
    "broken.json": b'{\n "a": 1,\n b}',
    "list.json": b"[1]",
    "deep.json": b"[" * 100_000,
    "long.json": b'{"a": ' + b"9" * 5000 + b"}",
    "latin.txt": "\u00e9".encode("latin-1"),
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, content in BROKEN.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("read", "name", "said"),
    [
        (read_toml, "broken.toml", r"not valid TOML: .* \(at line 2, column 10\)"),
        (read_json, "broken.json", r"not valid JSON \(at line 3, column 2\)"),
        (read_json, "list.json", "expected a JSON object"),
        (read_json, "deep.json", "not valid JSON"),
        (read_json, "long.json", "not valid JSON"),
        *((read, "latin.txt", "expected text in UTF-8") for read in (read_text, read_toml, read_json)),
        *((read, "folder", "is a folder; expected a file") for read in (read_text, read_toml, read_json)),
        *((read, "nowhere", "no such file") for read in (read_text, read_toml, read_json)),
        (read_toml, "list.json/x.toml", "no such file"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_names_the_file(here, read, name, said):
    with pytest.raises(EdgesimError, match=f"^{here / name}: {said}[^\n]*$") as refusal:
        read(here / name)
    assert "Errno" not in str(refusal.value)
    assert "char " not in str(refusal.value)


def test_a_file_that_is_missing_is_called_as_the_caller_says(here):
    with in_one_line(r"^no such run$"):
        read_toml(here / "nowhere", missing="no such run")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    """Some editors write one at the head of a file in UTF-8."""
    for name, content in (("run.toml", "seed = 1"), ("run.json", '{"seed": 1}')):
        (tmp_path / name).write_text(content, encoding="utf-8-sig")
    assert read_toml(tmp_path / "run.toml") == read_json(tmp_path / "run.json") == {"seed": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed = " + "9" * 5000, "Exceeds the limit"),
        ("seed = 0x" + "f" * 5000, "a number of more than 64 bits"),
        (".".join("a" * 3000) + " = 1", "too deep in one another"),
        ("seed = " + "[" * 5000 + "]" * 5000, "too deep in one another"),
    ],
)
def test_toml_of_numbers_and_nesting_that_nothing_can_use_is_one_line(here, text, said):
    (here / "huge.toml").write_text(text)
    with in_one_line(rf"huge.toml: not valid TOML: .*{said}"):
        read_toml(here / "huge.toml")
    key, _, value = text.partition(" = ")
    for words in (["--set", f"{key}={value}"], []):
        found = CliRunner().invoke(app, ["run", str(here / ("run.toml" if words else "huge.toml")), *words])
        assert isinstance(found.exception, SystemExit), repr(found.exception)
        assert found.output.count("error: ") == 1


def test_a_text_without_end_is_read_no_further_than_any_config_goes():
    with in_one_line("/dev/zero: expected a text of at most 67,108,864 characters"):
        read_text(Path("/dev/zero"))


def test_a_pipe_that_nobody_writes_to_is_refused_and_one_of_the_shell_is_read(tmp_path):
    os.mkfifo(tmp_path / "run.toml")
    with in_one_line(r"run.toml: is a pipe; expected a file"):
        read_text(tmp_path / "run.toml")
    out, into = os.pipe()
    os.write(into, b"seed = 3")
    os.close(into)
    assert read_text(Path(f"/dev/fd/{out}")) == "seed = 3"
    os.close(out)
