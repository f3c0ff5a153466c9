"""What the README shows is what works."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from edgesim import simulation
from edgesim.config_file import parse

README = (Path(__file__).parents[1] / "README.md").read_text()


def block(language: str, containing: str) -> str:
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if containing in text]
    return found


@pytest.mark.slow
def test_the_scenario_in_the_readme_runs(tmp_path):
    script = block("python", "BASE = {")
    assert script.count("\n") <= 45
    shorter = script.replace('"rounds": 40', '"rounds": 8').replace("range(3)", "range(1)").replace("0.7)", "0.55)")
    assert shorter != script
    (tmp_path / "mine.py").write_text(shorter)
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "fed-cbs" in done.stdout
    assert (tmp_path / "runs/my-study/summary.csv").exists()


def test_the_config_in_the_readme_is_valid():
    config = simulation.complete(parse(tomllib.loads(block("toml", "[selection]")), "README.md"))
    assert config.selection.options["lambda_0"] == 2.0


def test_the_files_that_the_readme_shows_exist():
    root = Path(__file__).parents[1]
    for path in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (root / path).exists(), path
