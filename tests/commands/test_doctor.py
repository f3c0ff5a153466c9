"""`edgesim doctor`: what an installation is, and what of it keeps runs from working."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgesim.commands import doctor

ROOT = Path(__file__).parents[2]


@pytest.fixture
def seen(monkeypatch, capsys):
    """Runs the command in this process: its status and the rows of its table, by their first column.

    To load every package takes seconds, and has tests with processes of their own.
    """
    monkeypatch.setattr(doctor, "_broken", lambda package: "")

    def ask():
        with pytest.raises(SystemExit) as ended:
            doctor.main()
        lines = capsys.readouterr().out.splitlines()
        return int(ended.value.code), {line.partition("  ")[0]: line for line in lines}

    return ask


def test_the_table_has_the_versions_of_all_direct_dependencies_and_the_machine(seen):
    status, rows = seen()
    assert status == 0
    direct = [line for line in metadata.requires("edgesim") if "extra ==" not in line]
    assert len(direct) > 15
    for package in ("torch", "numpy", "simpy", "bokeh"):
        assert f"  {metadata.version(package)}  " in rows[package]
    assert f" {sys.version_info.major}.{sys.version_info.minor}." in rows["Python"]
    assert {"edgesim", "cores", "memory", "GPU", "cache", "channels", "scenarios", "extra ray"} <= rows.keys()
    assert not any(name.startswith("error") for name in rows)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode or f"commit {done.stdout[:12]}" in rows["edgesim"]


def test_a_package_that_is_missing_or_too_old_is_a_reason_and_an_extra_is_not(seen, monkeypatch):
    true = metadata.version

    def version(name):
        if name in ("scipy", "mlflow"):
            raise metadata.PackageNotFoundError(name)
        return "1.0.0" if name == "numpy" else true(name)

    monkeypatch.setattr(metadata, "version", version)
    status, rows = seen()
    assert status == 1
    errors = [line for name, line in rows.items() if name.startswith("error")]
    assert [line.partition("; expected >=")[0] for line in errors] == ["error: numpy: 1.0.0", "error: scipy: missing"]
    assert rows["extra mlflow"].endswith("pip install 'edgesim[mlflow]'")


def test_small_shared_memory_is_a_note_and_a_cache_that_cannot_be_written_an_error(seen, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: SimpleNamespace(free=2**26))
    if Path("/dev/shm").is_dir():
        status, rows = seen()
        assert status == 0
        assert "else learning.back_end is 'loop'" in rows["shared memory"]
    monkeypatch.setenv("EDGESIM_CACHE", os.devnull + "/below")
    status, rows = seen()
    assert status == 1
    assert "set EDGESIM_CACHE" in rows["cache"]


def test_the_command_works_where_libraries_do_not_load(tmp_path):
    """As it is typed, with packages that are broken in front of the true ones."""
    (tmp_path / "torch.py").write_text('raise ImportError("libcudart.so: cannot open shared object file")')
    for package in ("typer", "rich", "numpy", "pydantic"):
        (tmp_path / f"{package}.py").write_text(f'raise ImportError("{package} is broken")')
    for module in ("tomli_w", "perfetto"):
        pytest.importorskip(module)
        (tmp_path / f"{module}.py").write_text('raise ValueError("no" + chr(10) + "luck")')
    status, errors, lines = as_typed(tmp_path)
    assert status == 1
    rows = [" ".join(line.split()) for line in lines]
    # An extra may be missing; a package that every run needs may not.
    for row in ("tomli-w broken: ValueError: no luck >=", "extra perfetto perfetto is broken: ValueError: no luck"):
        assert any(line.startswith(row) for line in rows)
    assert not any("perfetto" in error for error in errors)
    assert "error: torch: broken: ImportError: libcudart.so: cannot open shared object file" in errors
    assert "error: typer: broken: ImportError: typer is broken" in errors
    assert errors[-1] == "error: edgesim: cannot be loaded (ImportError: numpy is broken)"


def as_typed(folder):
    """The command in a process of its own, with modules of a folder in front of the true ones: status, errors, rows."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, "-m", "edgesim", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder)
    assert not done.stderr
    lines = done.stdout.splitlines()
    return done.returncode, [line.partition("; ")[0] for line in lines if line.startswith("error")], lines


def test_a_reader_that_stops_reading_sees_no_traceback():
    """Of a table that is made at once, where the whole one loads every package."""
    program = "from edgesim.commands import doctor; doctor.facts = lambda: [doctor.Fact('a', 'b')] * 9; doctor.main()"
    done = subprocess.run(
        ["sh", "-c", f'{sys.executable} -uc "{program}" | true'], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stderr == ""
