"""Processor time of `edgesim run` of 20 rounds, most of which is starting and ending, beside that of loading libraries.

Run with ``make bench``; aim: under twice these.
"""

import subprocess
import sys

import pytest
import tomli_w
from sizes import processor_s, size

TRIES = 3
LIBRARIES = "import numpy, pandas, pyarrow.parquet, scipy.special, pydantic, typer, rich.table"
WORLD = {"seed": 1, "rounds": size(20, 2), "data": {"partition": "fedteddi"}, "selection": {"policy": "random"}}


def python(*words, folder):
    """A process of Python, from its start to its end."""
    subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=True)


@pytest.mark.parametrize("training", ["none", "real"])
def test_a_run_of_twenty_rounds_beside_loading_its_libraries(benchmark, tmp_path, training):
    config = WORLD | {"round": {"payload_bits": 17_881_664.0}, "learning": {"training": training}}
    (tmp_path / "run.toml").write_text(tomli_w.dumps(config))
    loaded = LIBRARIES + ", torch" * (training == "real")

    def run():
        python("-m", "edgesim", "run", "run.toml", "--fresh", folder=tmp_path)

    measured_s = []

    def turn():
        measured_s.append((processor_s(run), processor_s(lambda: python("-c", loaded, folder=tmp_path))))

    benchmark.pedantic(turn, rounds=TRIES, warmup_rounds=1)
    run_s, libraries_s = map(min, zip(*measured_s, strict=True))
    benchmark.extra_info |= {"s": run_s, "libraries_s": libraries_s, "ratio": run_s / libraries_s}
    print(f"\n{run_s:.2f} and {libraries_s:.2f} s, {run_s / libraries_s:.2f}")
