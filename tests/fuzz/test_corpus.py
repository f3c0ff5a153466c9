"""Inputs that once failed are finished or refused in a line: each folder of ``corpus`` is typed again.

A folder holds the files of an input and ``command.json``, the words behind ``edgesim``. One that reads a finished run
in ``out`` may hold the files alone that differ from those of a run of `BASE`.
"""

import json
import shutil
from pathlib import Path

import pytest
from edited_runs import forget_digests
from fuzz_inputs import BASE, COMMAND
from fuzz_outcomes import GOOD, outcome

from edgesim.config_file import parse
from edgesim.simulation import composition as simulation

CORPUS = sorted(path.parent for path in Path(__file__).with_name("corpus").glob(f"*/{COMMAND}"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, whose tables other checks than that of digests look at."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    simulation.run(parse(BASE, "test"), folder)
    return forget_digests(folder)


@pytest.mark.parametrize("kept", CORPUS, ids=lambda path: path.name)
def test_an_input_that_once_failed_does_so_no_more(kept, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if (kept / "out").is_dir():
        shutil.copytree(whole, tmp_path / "out")
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    words = json.loads((kept / COMMAND).read_text())
    writes = words[0] == "run" and not (kept / "out").is_dir()
    ended, said = outcome(words, tmp_path / "out" if writes else None)
    assert ended in GOOD, f"ended as {ended}: {said}"


def test_the_corpus_has_inputs_of_every_sort():
    assert {path.name.partition("-")[0] for path in CORPUS} >= {
        "config",
        "content",
        "metadata",
        "data",
        "run",
        "command",
    }
