"""A notebook, executed by Jupyter's own client: a policy beside it, a run, a study in processes, what cells show."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import edgesim

CELLS = [
    """
import edgesim
config = {"rounds": 40, "devices": {"count": 6}, "data": {"dataset": "none"}, "learning": {"training": "none"},
          "round": {"payload_bits": 1e5, "admission": "count", "count": 2},
          "selection": {"policy": "beside.LongestWait"}}
run = edgesim.run(config, "one")
run
""",
    "run.plot('gantt')",
    "run.rounds",
    "run.show()",
    """
study = edgesim.study(config, {"selection.policy": ["random", "beside.LongestWait"]}, seeds=2, out="two", jobs=2)
study
""",
    "study.compare('arrived')",
    "study.show()",
]


def outputs(cell, kind):
    """The outputs of a cell of a kind such as ``text/html``."""
    return [out["data"][kind] for out in cell.outputs if kind in out.get("data", {})]


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """Jupyter's files lie below the test's folder, and its kernel finds this edgesim."""
    monkeypatch.setenv("PYTHONPATH", str(Path(edgesim.__file__).parents[1]))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    for variable in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))


@pytest.mark.slow
def test_a_notebook_runs_studies_and_shows_figures_and_tables(tmp_path, at_home):
    (tmp_path / "beside.py").write_text((Path(edgesim.__file__).parent / "templates/policy.py").read_text())
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS])
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    ran, figure, table, shown, study, compared, tables = notebook.cells
    assert "finished" in outputs(ran, "text/html")[-1]
    # The one line of progress has been changed in its place, and nothing was said on stderr.
    assert [line for line in outputs(ran, "text/plain") if "of 40" in line] == outputs(ran, "text/plain")[:1]
    assert "40 of 40" in outputs(ran, "text/plain")[0]
    assert outputs(figure, "image/png")
    assert "<table" in outputs(table, "text/html")[0]
    assert "policy, seed" in str(shown.outputs)
    assert "4 of 4 finished" in outputs(study, "text/html")[-1]
    assert "160 of 160" in str(outputs(study, "text/plain"))
    assert "<table" in outputs(compared, "text/html")[0]
    assert "clients per round" in str(tables.outputs)
    warned = [out for cell in notebook.cells for out in cell.outputs if out.get("name") == "stderr"]
    assert warned == []
    assert "ipywidgets" not in str([cell.outputs for cell in notebook.cells])
    # Beside its last value, the study's cell has its line of progress alone.
    assert [out["output_type"] for out in study.outputs] == ["display_data", "execute_result"]
    assert (tmp_path / "one/code/beside.py").is_file()
    assert (tmp_path / "two/beside.LongestWait-s1/code/beside.py").is_file()
