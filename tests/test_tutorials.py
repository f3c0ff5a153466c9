"""The tutorials: their cells run, they show what these cells printed, and pages are made of them."""

import os
import re
import runpy
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = runpy.run_path(str(ROOT / "docs/notebooks.py"))
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.ipynb"))
MOST_BYTES = 100_000
"""Of a figure."""


def read(file):
    return nbformat.read(file, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def kinds(notebook):
    """What each cell shows: ``text`` for what it prints, else the forms of its result."""
    return [["text" if "text" in out else sorted(out["data"]) for out in cell.outputs] for cell in code(notebook)]


def test_there_are_tutorials_and_the_handbook_lists_each():
    assert len(TUTORIALS) >= 7
    listed = re.findall(r"docs/tutorials/(\w+)\.md", (ROOT / "mkdocs.yml").read_text())
    assert sorted(listed) == [file.stem for file in TUTORIALS]


@pytest.mark.whole_family
@pytest.mark.parametrize("file", TUTORIALS, ids=lambda file: file.stem)
def test_a_tutorial_shows_what_its_cells_printed_and_no_path_of_a_machine(file):
    notebook = read(file)
    assert notebook.metadata["ran"] == NOTEBOOKS["digest"](notebook), f"edited since: make tutorials NAMES={file.stem}"
    shown = [out for cell in code(notebook) for out in cell.outputs]
    assert {out["output_type"] for out in shown} <= {"stream", "execute_result", "display_data"}
    assert all(out.get("name") != "stderr" or out["text"].startswith("note: ") for out in shown)
    assert not re.search(r"/(tmp|root|home)/|site-packages", re.sub(r'"image/png": ".*"', "", file.read_text()))
    _, figures = NOTEBOOKS["page"](notebook, file.stem)
    assert figures
    assert all(len(figure) < MOST_BYTES for figure in figures.values())


@pytest.fixture
def one_core():
    """All that the test starts has one core, so that each study starts one process, which costs as much as its runs."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    os.sched_setaffinity(0, {sorted(cores)[worker % len(cores)]})
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.slow
@pytest.mark.parametrize("file", TUTORIALS, ids=lambda file: file.stem)
def test_a_tutorial_runs_at_reduced_size_and_shows_the_same_kinds_of_things(file, tmp_path, monkeypatch, one_core):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    for variable in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    stored, notebook = read(file), read(file)
    (tmp_path / "here").mkdir()
    NOTEBOOKS["run"](notebook, tmp_path / "here", quick=True)
    assert "# quick:" not in "".join(cell.source for cell in code(notebook))
    assert kinds(notebook) == kinds(stored)
