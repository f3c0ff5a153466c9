"""Paths of the public interface may be given as texts, and are refused where they are no paths."""

import re
from pathlib import Path

import pytest
from refusals import in_one_line
from small_runs import TIMING

import edgesim

CONFIG = TIMING | {"rounds": 2, "devices": {"count": 4}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return edgesim.run(CONFIG, tmp_path_factory.mktemp("paths") / "run", quiet=True).folder


@pytest.mark.parametrize("name", ["read_config", "read_run", "open"])
def test_a_run_folder_may_be_a_text(folder, name):
    read = getattr(edgesim, name)
    assert str(read(str(folder))) == str(read(folder))


CALLS = {
    "read_config": lambda path: edgesim.read_config(path),
    "read_run": lambda path: edgesim.read_run(path),
    "read_table": lambda path: edgesim.read_table(path, "rounds"),
    "open": lambda path: edgesim.open(path),
    "StudyResult": lambda path: edgesim.StudyResult(path),
    "resume": lambda path: edgesim.resume(path),
    "load, path": lambda path: edgesim.load(path),
    "run, out": lambda path: edgesim.run(CONFIG, path),
    "dry_run, out": lambda path: edgesim.dry_run(CONFIG, path),
    "study, out": lambda path: edgesim.study(CONFIG, out=path),
    "run_study, out": lambda path: edgesim.run_study(edgesim.Study("s", edgesim.grid(CONFIG, {}, [1])), path),
    "fork, out": lambda path: edgesim.fork("run", 1, {}, path),
    "compare, folders": lambda path: edgesim.compare(path, "energy_j"),
    "draw, folders": lambda path: edgesim.draw(["run", path]),
    "draw, out": lambda path: edgesim.draw([], path),
}


@pytest.mark.parametrize(
    ("path", "words"), [(3, "a path (got int)"), ("a\nb", r"a path of printable text (got 'a\nb'")]
)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_path_of_printable_text_is_refused_in_a_line_that_names_the_argument(
    call, path, words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with in_one_line("^" + re.escape(f"{call.partition(', ')[2] or 'folder'}: expected {words}")):
        CALLS[call](path)
    assert [*tmp_path.iterdir()] == []


def test_a_name_of_a_study_that_is_to_be_its_folder_is_printable(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(edgesim.EdgesimError, match=r"^study: expected a path of printable text \(got 'runs/a\\nb'"):
        edgesim.study(CONFIG, name="a\nb")
    assert [*tmp_path.iterdir()] == []


def test_files_and_the_folder_of_a_study_may_be_texts(folder, tmp_path, capsys, studies_here):
    assert edgesim.load(str(folder / "config.toml")) == edgesim.load(folder / "config.toml")
    plan = edgesim.Study("texts", edgesim.grid(CONFIG, {"round.tmax_s": [1.0]}, range(1)))
    assert [*edgesim.run_study(plan, str(tmp_path / "study"), jobs=1)] == ["tmax1-s0"]
    assert edgesim.open(str(tmp_path / "study")).plan.name == "texts"
    capsys.readouterr()


def test_a_fork_takes_the_mapping_that_a_run_takes(folder, tmp_path):
    """Beside the texts of the command line; None leaves a key out."""
    forks = [
        edgesim.fork(folder, 1, change, str(tmp_path / name), quiet=True)
        for name, change in (("mapping", {"round.tmax_s": 2.0}), ("texts", ["round.tmax_s=2.0"]))
    ]
    first, second = (edgesim.read_config(one.folder) for one in forks)
    assert first == second
    assert first["round"]["tmax_s"] == 2.0
    assert edgesim.read_run(forks[0].folder)["fork"] == edgesim.read_run(forks[1].folder)["fork"]
    with pytest.raises(edgesim.EdgesimError, match=r"^set: expected a mapping such as"):
        edgesim.fork(folder, 1, "round.tmax_s=2.0", tmp_path / "text", quiet=True)
    with pytest.raises(edgesim.EdgesimError, match=r"devices.count: a fork has the past of its run"):
        edgesim.fork(folder, 1, {"devices.count": 3}, tmp_path / "other", quiet=True)
