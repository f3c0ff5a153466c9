"""The house: imports point one way, and the wheel carries everything that a user needs."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import edgesim

ROOT = Path(__file__).parents[1]


def test_every_public_name_can_be_had():
    assert [name for name in edgesim.__all__ if getattr(edgesim, name, None) is None] == []


@pytest.mark.slow
def test_imports_point_one_way():
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports"))], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = tmp_path / "env/bin/python"
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)],
        check=True,
    )
    # The dependencies are those installed here; the editable copy is not among them: it hangs on a .pth file,
    # and .pth files are read in the environment's own folder only.
    (site,) = (tmp_path / "env/lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    config = tmp_path / "run.toml"
    config.write_text("rounds = 2\n[learning]\ntraining = 'none'\n[radio]\nchannel = 'free-space'\n")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(tmp_path / "env/bin/edgesim"), "run", "run.toml"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    where = subprocess.run(
        [str(python), "-c", "import edgesim; print(edgesim.__file__)"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert str(tmp_path) in where.stdout
    assert (site / "edgesim/content/scenarios/fedteddi.py").is_file()
