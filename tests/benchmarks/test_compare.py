"""``edgesim compare`` as typed, over 200 run folders of 300 rounds; the yardstick is the bare reading of their tables.

Aim: under 5 s, from the start of the interpreter to its end.
"""

import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from edited_runs import forget_digests
from sizes import processor_s, size
from whole_runs import TIMED, play

from edgesim.folder.records import read_table

POLICIES, CLASSES = ("random", "best-channel", "fedcs", "availability-first"), 10
SEEDS, ROUNDS = size((50, 300), (6, 60))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Copies of a timing-only run, each with a policy and seed of its own and accuracies as of a run that trains."""
    out = tmp_path_factory.mktemp("compared")
    play(out / "one", TIMED, seed=12345, rounds=ROUNDS, round={"payload_bits": 17_881_664.0})
    forget_digests(out / "one")
    text = (out / "one/config.toml").read_text()
    rounds, metrics = read_table(out / "one", "rounds"), read_table(out / "one", "metrics")
    draws, numbers = np.random.default_rng(0), np.arange(1, ROUNDS + 1)
    classes = [str(label) for label in range(CLASSES)]
    found = []
    for place, policy in enumerate(POLICIES):
        for seed in range(SEEDS):
            folder = out / f"{policy}-s{seed}"
            shutil.copytree(out / "one", folder)
            own = text.replace("seed = 12345", f"seed = {seed}").replace('policy = "random"', f'policy = "{policy}"')
            (folder / "config.toml").write_text(own)
            course = 0.5 + 0.4 * (1 - np.exp(-numbers / (30 + 5 * place))) + draws.normal(0, 0.01, ROUNDS)
            by_class = pd.DataFrame(
                {"round": np.repeat(numbers, CLASSES), "name": "class_accuracy", "key": classes * ROUNDS, "value": 0.8}
            )
            start = pd.DataFrame({"round": [0], "name": ["test_accuracy"], "key": [""], "value": [0.1]})
            for name, table in (
                ("rounds", rounds.assign(test_accuracy=course.clip(0, 1))),
                ("metrics", pd.concat([start, metrics, by_class])),
            ):
                schema = pq.read_schema(out / f"one/{name}.parquet")
                table.to_parquet(folder / f"{name}.parquet", schema=schema, index=False)
            found.append(folder)
    return found


def test_policies_of_200_runs_are_compared(benchmark, folders):
    options = ["--metric", "rounds_to_target", "--metric", "final_accuracy", "--by", "policy", "--target", "0.75"]
    command = [sys.executable, "-m", "edgesim", "compare", *map(str, folders), *options]
    taken_s, done = [], []

    def run() -> None:
        done.append(subprocess.run(command, capture_output=True, text=True, check=True))

    benchmark.pedantic(lambda: taken_s.append(processor_s(run)), rounds=3, warmup_rounds=1)
    benchmark.extra_info["processor_s"] = min(taken_s)
    print(f"processor time: {min(taken_s):.2f} s")
    assert done[-1].stdout.count(f"corrected, n = {SEEDS}") == 2 * 6
    assert "policy = " not in done[-1].stdout


def test_yardstick_bare_reading_of_their_tables(benchmark, folders):
    def read() -> int:
        return sum(
            len(pd.read_parquet(folder / f"{name}.parquet")) for folder in folders for name in ("rounds", "metrics")
        )

    assert benchmark.pedantic(read, rounds=3) > len(folders) * (ROUNDS + CLASSES * ROUNDS)
