"""Processor time of `edgesim run` of 20 rounds, most of which is starting and ending, beside that of loading libraries.

Run with ``make bench``; aim: under twice these.
"""

import os
import subprocess
import sys

import pytest
import tomli_w
from sizes import size

TRIES = 3
LIBRARIES = "import numpy, pandas, pyarrow.parquet, scipy.special, pydantic, typer, rich.table"
WORLD = {"seed": 1, "rounds": size(20, 2), "data": {"partition": "fedteddi"}, "selection": {"policy": "random"}}


def processor_s(*words, folder):
    """Of a process of Python, from its start to its end."""
    before = os.times()
    subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


@pytest.mark.parametrize("training", ["none", "real"])
def test_a_run_of_twenty_rounds_beside_loading_its_libraries(benchmark, tmp_path, training):
    config = WORLD | {"round": {"payload_bits": 17_881_664.0}, "learning": {"training": training}}
    (tmp_path / "run.toml").write_text(tomli_w.dumps(config))
    loaded = LIBRARIES + ", torch" * (training == "real")

    def run():
        return processor_s("-m", "edgesim", "run", "run.toml", "--fresh", folder=tmp_path)

    measured_s = []

    def turn():
        measured_s.append((run(), processor_s("-c", loaded, folder=tmp_path)))

    benchmark.pedantic(turn, rounds=TRIES, warmup_rounds=1)
    run_s, libraries_s = map(min, zip(*measured_s, strict=True))
    benchmark.extra_info |= {"s": run_s, "libraries_s": libraries_s, "ratio": run_s / libraries_s}
    print(f"\n{run_s:.2f} and {libraries_s:.2f} s, {run_s / libraries_s:.2f}")
