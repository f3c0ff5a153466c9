"""`make setup`: an environment from what pip is set up for, and one line where there can be none."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

BACKEND = """
import base64, hashlib, pathlib, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    import needed  # of the environment itself: the build has none of its own
    return wheel(folder, {"small.pth": str(pathlib.Path.cwd())}, "small")

def wheel(folder, files, name):
    about = f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n"
    kind = "Wheel-Version: 1.0\\nGenerator: none\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    home = f"{name}-1.0.dist-info/"
    with zipfile.ZipFile(f"{folder}/{name}-1.0-py3-none-any.whl", "w") as archive:
        for file, text in {**files, home + "METADATA": about, home + "WHEEL": kind}.items():
            archive.writestr(file, text)
        archive.writestr(home + "RECORD", "")
    return f"{name}-1.0-py3-none-any.whl"
"""
PROJECT = """[build-system]
requires = ["needed"]
build-backend = "backend"
backend-path = ["."]
[project]
name = "small"
version = "1.0"
dependencies = ["needed==1.0"]
[project.optional-dependencies]
dev = []
"""


@pytest.fixture
def clone(tmp_path):
    """A project set up as edgesim is, with one dependency, whose wheel is in a folder; and the variables of a shell."""
    folder = tmp_path / "clone"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/setup.py", folder / ".ci")
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "backend.py").write_text(BACKEND)
    (tmp_path / "wheels").mkdir()
    runpy.run_path(str(folder / "backend.py"))["wheel"](tmp_path / "wheels", {"needed.py": ""}, "needed")
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "MAKE", "MFLAGS"))}
    return folder, own | {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(tmp_path / "wheels")}


def make_setup(clone, **variables):
    folder, environment = clone
    command = ["make", "setup", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, cwd=folder, env=environment | variables, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    return done.returncode, done.stdout.splitlines(), errors


@pytest.mark.slow
def test_an_environment_is_made_from_wheels_alone_and_of_nothing_else_on_the_machine(tmp_path, clone):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with zipfile.ZipFile(tmp_path / "wheels/needed-1.0-py3-none-any.whl") as wheel:
        wheel.extractall(elsewhere)
    # An older pip than today's is what a Python brings; a constraint keeps it from being another one.
    (tmp_path / "capped.txt").write_text("pip<20\n")
    capped = {"PIP_NO_INDEX": "1", "PIP_CONSTRAINT": str(tmp_path / "capped.txt"), "PYTHONPATH": str(elsewhere)}
    status, said, errors = make_setup(clone, **capped)
    assert (status, errors) == (0, [])
    assert "downloads nothing" in said[0]
    folder, _ = clone
    ask = [folder / ".venv/bin/python", "-c", "import needed, backend; print(needed.__file__)"]
    done = subprocess.run(ask, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.startswith(str(folder / ".venv"))
    assert "include-system-site-packages = false" in (folder / ".venv/pyvenv.cfg").read_text()
    # What is ready is not made again.
    assert make_setup(clone) == (0, ["make: Nothing to be done for 'setup'."], [])


@pytest.mark.slow
def test_without_a_network_or_a_wheel_setup_ends_with_one_line(tmp_path, clone):
    (tmp_path / "wheels/needed-1.0-py3-none-any.whl").unlink()
    status, said, errors = make_setup(clone, PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="1")
    assert status == 2
    assert re.search(r"up to \d\.\d GB", said[0])
    (error,) = errors
    assert re.search(r"make setup: Could not find .* needed==1\.0 .*; .* Connection refused; all that pip said", error)


def test_a_python_that_cannot_make_environments_is_told_with_one_line(tmp_path, clone):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/ensurepip.py").write_text('raise ImportError("none", name="ensurepip")')
    status, _, errors = make_setup(clone, PYTHONPATH=str(tmp_path / "broken"))
    assert (status, len(errors)) == (2, 1)
    assert "no ensurepip; on Debian and Ubuntu: apt-get install python3-venv" in errors[0]
    (clone[0] / ".venv").write_text("a file")
    assert make_setup(clone)[2] == [f"make setup: Unable to create directory {str(clone[0] / '.venv')!r}"]


def test_the_makefile_asks_for_the_python_that_the_project_needs():
    bound = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    asked = re.search(r"version_info < \(([\d, ]+)\)", (ROOT / "Makefile").read_text())
    assert asked
    assert bound == f">={asked[1].replace(', ', '.')}"
    assert f"Python {bound[2:]} or newer" in (ROOT / "README.md").read_text()


def test_a_python_that_is_no_command_is_one_line(clone):
    folder, environment = clone
    command = ["make", "setup", "PYTHON=nope"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "make setup: PYTHON = nope is no command, expected Python 3.11.4 or newer" in line
