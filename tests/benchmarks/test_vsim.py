"""Timing-only rounds beside those of another simulator, APPFL's synchronous driver of virtual time, in one process.

The driver is bare: no radio, no decisions, no tables, and clients and a server that compute nothing. edgesim's rounds
have all of that. `make peers` installs it; without it the benchmark is skipped.
"""

import logging
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sizes import size
from whole_runs import TIMED, merged

from edgesim.config_file import parse
from edgesim.simulation import composition as simulation

PEERS = Path(__file__).parent / "peers"
ENVIRONMENT = PEERS.parents[2] / "runs/peers/environments/vsim"
DEVICES, TRIES = size((1000, 9), (50, 1))


@pytest.fixture
def vsim(monkeypatch):
    """The package of the drivers."""
    if not (ENVIRONMENT / "ready").is_file():
        pytest.skip("vsim is not installed: make peers")
    (packages,) = ENVIRONMENT.glob("lib/python*/site-packages")
    # Last, so that it brings no other version of anything that edgesim uses.
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    from appfl import vsim

    return vsim


class Idle:
    """A client of vsim that computes nothing."""

    def __init__(self, number: int) -> None:
        self.number = str(number)

    def get_id(self) -> str:
        return self.number

    def load_parameters(self, parameters: dict) -> None:
        pass

    def train(self) -> None:
        pass

    def get_parameters(self) -> tuple[dict, dict]:
        return {}, {"current_local_steps": 5}


def idle_server() -> SimpleNamespace:
    """A server of vsim whose updates and model are empty."""
    return SimpleNamespace(
        scheduler=SimpleNamespace(num_clients=DEVICES, set_num_clients=lambda count: None),
        get_parameters=lambda serial_run: {},
        global_update=lambda **update: None,
        training_finished=lambda: False,
    )


@pytest.mark.parametrize(("participants", "rounds"), size([(10, 200), (100, 50), (1000, 10)], [(10, 2)]))
def test_a_timing_only_round_beside_the_bare_driver_of_vsim(benchmark, tmp_path, vsim, participants, rounds):
    """Aim: 10 times the driver's time at 10 of 1,000 devices a round, and 6 times at 100.

    Both take turns, and the least time of each counts, without the first round and what comes before it.
    """
    a_round = {"tmax_s": 600.0, "payload_bits": 17_881_664.0, "computes": "selected", "delay_knowledge": "planned"}
    a_round |= {"admission": "count", "count": participants, "allocator": "equal_share"}
    values = {"rounds": rounds, "devices": {"count": DEVICES}, "selection": {"policy": "random"}, "round": a_round}
    settings = parse(merged(TIMED, values), "benchmark")
    profiles = {str(number): vsim.ClientProfile(1 + number / DEVICES, 100.0) for number in range(DEVICES)}
    quiet = logging.getLogger("vsim")
    quiet.setLevel(logging.ERROR)

    def driver() -> float:
        made = vsim.SyncSimDriver(
            idle_server(),
            [Idle(number) for number in range(DEVICES)],
            profiles,
            participants,
            quiet,
            base_step_time=0.1,
            mode="count",
            min_responses=participants,
            target_rounds=rounds,
        )
        started_s = time.process_time()
        made.run()
        assert len(made.history) == rounds
        return (time.process_time() - started_s) / rounds

    folders = (tmp_path / str(number) for number in range(TRIES + 2))

    def edgesim() -> float:
        ends_s: list[float] = []
        simulation.run(settings, next(folders), lambda _: ends_s.append(time.process_time()))
        return (ends_s[-1] - ends_s[0]) / (rounds - 1)

    own_s, driver_s = np.min([(edgesim(), driver()) for _ in range(TRIES)], axis=0)
    benchmark.pedantic(edgesim, rounds=1)
    benchmark.extra_info |= {"ms": 1e3 * own_s, "driver_ms": 1e3 * driver_s, "ratio": own_s / driver_s}
    print(f"\n{participants} of {DEVICES}: {1e3 * own_s:.3f} and {1e3 * driver_s:.3f} ms, {own_s / driver_s:.1f}")
