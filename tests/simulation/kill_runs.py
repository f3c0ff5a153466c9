"""Kills runs at random instants and resumes them: ``python tests/simulation/kill_runs.py FOLDER --kills 200``.

Each run trains, with uploads on the air at its checkpoints, which are written after every round. A process of its own
that is forked from this one, which has only loaded the libraries, plays it until SIGKILL comes; the next one goes on.
Runs that have come to their end are compared with undisturbed ones, byte for byte. Prints a table by kind, and ends
with status 1 if any file differs.
"""

import argparse
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from stopped_runs import content

import edgesim.learning.learner
from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.folder.records import read_run, read_table
from edgesim.simulation import composition as simulation

COUNT = {"admission": "count", "count": 4}
KINDS: dict[str, dict[str, Any]] = {
    "streams": {
        "upload": {"codec": "topk", "coding": "index", "ratio": 1.0, "size": "stream", "least": 0.001},
        "round": {**COUNT, "allocator": "equal_bits", "close": "deadline", "payload_bits": 1e7},
    },
    "moving": {
        "mobility": {"model": "direction", "speed_mps": [20.0, 60.0], "turn_s": 2.0},
        "radio": {"bandwidth_hz": 4e6, "sharing": "reserved", "fading": "rayleigh"},
        "topology": {"file": "three-cells"},
        "round": {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.2, "path_knowledge": "straight"},
    },
    "buffered": {"round": {**COUNT, "protocol": "buffered", "protocol_options": {"buffer": 2}}},
    "synchronous": {},
    "late": {"round": {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.2}},
    "safa": {"algorithm": {"name": "safa"}, "selection": {"policy": "safa"}, "round": COUNT},
    "asynchronous": {"round": {**COUNT, "protocol": "asynchronous"}},
    "moving-buffered": {
        "mobility": {"model": "waypoint", "speed_mps": [20.0, 60.0], "pause_s": 1.0},
        "round": {**COUNT, "protocol": "buffered", "protocol_options": {"buffer": 2}},
    },
}


def make_config(kind: str) -> RunConfig:
    """A run of some tenths of a second."""
    own = KINDS[kind]
    values = {
        "seed": 11,
        "rounds": 40,
        "devices": {"count": 12, "battery_j": 40.0, "recharge_w": 1.0},
        "availability": {"model": "bernoulli", "probability": 0.8, "slot_s": 0.3, "interruption": "pause"},
        "radio": {"bandwidth_hz": 4e6, "sharing": "reshared"},
        "data": {"samples_per_device": 12, "partition": "fedteddi"},
        "learning": {"pretrain": False, "steps": 3, "batch_size": 8, "back_end": "loop", "persist_momentum": True},
        "evaluation": {"samples": 50, "every": 3},
        **own,
        "round": {"tmax_s": 0.6, "payload_bits": 1e6, **own.get("round", {})},
    }
    return parse(values, kind)


def played(config: RunConfig, folder: Path, kill_s: float) -> bool:
    """Play a run, or go on with it, in a process of its own that lives for so long; whether it came to its end."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            simulation.run(config, folder, checkpoint_s=0.0)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    until_s = time.monotonic() + kill_s
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0, f"{folder}: status {os.waitstatus_to_exitcode(status)}"
            return True
        if time.monotonic() >= until_s:
            os.kill(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        time.sleep(0.002)


def main() -> None:
    """Kill so many processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    some, differ = random.Random(given.seed), []
    for place, kind in enumerate(KINDS):
        config, left = make_config(kind), given.kills // len(KINDS) + (place < given.kills % len(KINDS))
        if not left:
            continue
        started_s = time.monotonic()
        assert played(config, given.folder / kind / "undisturbed", 600)
        length_s, kills, went_on, ends = time.monotonic() - started_s, 0, 0, 0
        expected = content(given.folder / kind / "undisturbed")
        while kills < left:
            folder = given.folder / kind / f"killed-{ends}"
            while kills < left and not played(config, folder, some.uniform(0.05, 0.7) * length_s):
                kills += 1
                if (folder / "rounds.arrow").exists() or (folder / "rounds.parquet").exists():
                    read_table(folder, "rounds")
            played(config, folder, 600)
            ends += 1
            went_on += len(read_run(folder).get("resumed", []))
            found = content(folder)
            differ += [f"{folder}/{name}" for name in expected if found.get(name) != expected[name]]
            differ += [str(path) for path in folder.iterdir() if path.suffix in (".arrow", ".part")]
        print(f"| {kind} | {kills} kills | {went_on} times gone on | {ends} runs ended |", flush=True)
    for path in differ:
        print(f"differs: {path}")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    assert edgesim.learning.learner
    main()
