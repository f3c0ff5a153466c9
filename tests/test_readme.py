"""What the README shows is what works."""

import re
import subprocess
import sys
import textwrap
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from edgesim import grid, simulation
from edgesim.config_file import parse
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.algorithm import Devices, Sizes
from edgesim.learning.drift import LAWS
from edgesim.learning.drift.law import When
from edgesim.learning.federation import make_federation
from edgesim.streams import Streams

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


def test_the_readmes_way_to_give_options_to_one_value_of_an_axis_plans_both():
    names = {"grid": grid, "BASE": {"rounds": 3}}
    exec(textwrap.dedent(block("python", "by_slots")), names)
    models = [(run.config.availability.model, run.folder) for run in names["runs"]]
    assert models == [(model, f"{model}-s{seed}") for model in ("always", "markov") for seed in range(3)]


def test_the_config_in_the_readme_is_valid():
    config = simulation.complete(parse(tomllib.loads(block("toml", "[selection]")), "README.md"))
    assert config.selection.options["lambda_0"] == 2.0


def test_the_drift_in_the_readme_deals_its_mixes():
    config = simulation.complete(parse(tomllib.loads(block("toml", "[drift]")), "README.md"))
    drift = make_federation(config, Streams(0)).drift
    halfway = drift.at(When(26, 1, 25.0)).class_counts
    assert halfway.tolist() == [[4] * 10] * config.devices.count
    table = README[README.index("| law | what a device holds") :].split("\n\n")[0]
    for name, law in LAWS.items():
        (row,) = [line for line in table.splitlines() if line.startswith(f"| `{name}` |")]
        assert all(f"`{option}`" in row for option in law.model_fields if option != "pool"), name


def test_the_table_of_algorithms_says_what_they_do():
    (table,) = re.findall(r"\| `name` \| options .*?\n\n", README, re.DOTALL)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:] if line]
    assert len(rows) > 5
    for name, options, half, protocols, bits, computing in rows:
        kind = ALGORITHMS[name.strip("`")]
        ids, defaults = np.arange(3), kind.Options()
        devices = Devices(ids, np.zeros((3, 0), dtype=np.int64), ids + 20)
        algorithm = kind(defaults, Sizes(64.0, 2, 3), Streams(0))
        told = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in defaults}
        assert options == ", ".join(f"`{key}` {value}" for key, value in told.items())
        assert half == ("both" if len(kind.halves) == 2 else "".join(kind.halves))
        allowed = [one for one in ("synchronous", "buffered", "asynchronous") if one in kind.protocols]
        assert protocols == ("all three" if len(allowed) == 3 else ", ".join(allowed))
        ledger = algorithm.ledger(1)
        down, up = (ask(devices, 1, ledger)[0] / 64 for ask in (algorithm.download_bits, algorithm.upload_bits))
        assert bits == f"{down:g}, {up:g}"
        factor = algorithm.compute_factor(devices, ids + 20, 1, ledger)
        assert float(Fraction(computing)) == pytest.approx(factor[0])


def test_the_files_that_the_readme_shows_exist():
    root = Path(__file__).parents[1]
    for path in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (root / path).exists(), path
