"""Whatever comes in, one line that says what is wrong, within seconds; or a run that means something.

Quick tests try a few inputs of each kind, slow ones 700 in all; ``EDGESIM_FUZZ=30000`` tries so many instead.
"""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from edited_runs import forget_digests
from fuzz_inputs import BASE, COMMAND, CONTENT, KINDS, ROOT, merged, whole_data, write
from fuzz_outcomes import GOOD, bad_number, outcome
from fuzz_table import tried

from edgesim.config_file import parse
from edgesim.simulation import composition as simulation

ALL = int(os.environ.get("EDGESIM_FUZZ", "700"))
SHARE = {"combination": 0.25, "config": 0.2, "run folder": 0.15, "content file": 0.2}
"""Of all inputs; the other kinds share what is left."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, whose tables other checks than that of digests look at."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    simulation.run(parse(BASE, "test"), folder)
    return forget_digests(folder)


def try_inputs(kind: str, count: int, whole: Path) -> None:
    before = Path.cwd()
    try:
        _, faults = tried(kind, count, 0, whole, None)
    finally:
        os.chdir(before)
    assert faults == {}


CORPUS = sorted(path.parent for path in Path(__file__).with_name("corpus").glob(f"*/{COMMAND}"))
"""A folder holds the files of an input that once failed and ``command.json``, the words behind ``edgesim``. One that
reads a finished run in ``out`` may hold the files alone that differ from those of a run of `BASE`."""


@pytest.mark.usefixtures("figures_as_text")
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


@pytest.mark.parametrize("name", [*CONTENT, "npz", "mnist", "images"])
def test_the_files_that_are_broken_make_a_run_while_they_are_whole(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name in CONTENT:
        text, config = CONTENT[name]
        Path(name).write_text(text)
    else:
        _, config = whole_data(name, tmp_path)
    if name == "recorded-capacity.toml":
        shutil.copy(ROOT / "channels" / "recorded-capacity.csv", tmp_path)
    assert outcome(write(tmp_path, merged(BASE, config)), tmp_path / "out") == ("finished", "")
    if name == "week.csv":
        assert outcome(["trace", "show", name]) == ("finished", "")


@pytest.mark.usefixtures("figures_as_text")
@pytest.mark.parametrize("kind", KINDS)
def test_a_few_inputs_are_refused_in_a_line_or_mean_something(kind, whole):
    try_inputs(kind, 6, whole)


@pytest.mark.slow
@pytest.mark.usefixtures("figures_as_text")
@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_refused_in_a_line_or_mean_something(kind, whole):
    rest = (1 - sum(SHARE.values())) / (len(KINDS) - len(SHARE))
    try_inputs(kind, round(ALL * SHARE.get(kind, rest)), whole)


def test_numbers_that_no_run_may_have_are_found(whole, tmp_path):
    """Those that `edgesim check` finds have tests of their own."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    assert bad_number(folder) == ""
    for name, edit, said in (
        ("activities", lambda rows: rows.assign(energy_j=-1.0), "'energy_j': expected finite numbers, 0 or more"),
        ("devices", lambda rows: rows.assign(mu_per_s=np.inf), "devices.mu_per_s holds inf to inf"),
    ):
        rows = pd.read_parquet(whole / f"{name}.parquet")
        edit(rows).to_parquet(folder / f"{name}.parquet")
        assert said in bad_number(folder)
        shutil.copy(whole / f"{name}.parquet", folder)
