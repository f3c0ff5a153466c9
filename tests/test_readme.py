"""What the README shows is what works."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from edgesim import simulation
from edgesim.config_file import parse
from edgesim.runs.records import read_table
from edgesim.runs.saved import pack, unpack
from edgesim.selection import SELECTORS, make_selector

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


def test_the_policy_in_the_readme_takes_turns_and_its_state_can_be_saved(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "longest_wait.py").write_text(block("python", "class LongestWait"))
    policy = importlib.import_module("longest_wait").LongestWait
    monkeypatch.setitem(SELECTORS, "longest-wait", policy)
    knobs = {"admission": "count", "count": 2, "payload_bits": 1e5, "tmax_s": 5.0}
    config = {
        "rounds": 3,
        "devices": {"count": 6},
        "learning": {"training": "none"},
        "selection": {"policy": "longest-wait"},
    }
    simulation.run(parse(config | {"round": knobs}, "test"), tmp_path / "run")
    updates = read_table(tmp_path / "run", "updates")
    assert [set(mine) for _, mine in updates.groupby("round")["device"]] == [{0, 1}, {2, 3}, {4, 5}]
    made = make_selector("longest-wait", {}, 6, 10)
    assert unpack(type(made.state), *pack(made.state)).last.tolist() == [0] * 6


def test_the_files_that_the_readme_shows_exist():
    root = Path(__file__).parents[1]
    for path in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (root / path).exists(), path
