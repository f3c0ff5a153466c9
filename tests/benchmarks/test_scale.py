"""How cost grows with the devices, timing only; beside each number stands what the project aims at.

Run with ``make bench``; the figures of a machine go into ``extra_info`` of pytest-benchmark's output.
"""

import time
import tracemalloc

import numpy as np
import pytest
import simpy
from sizes import size

from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.engine.clock import Clock
from edgesim.engine.uplink import ReservedBand
from edgesim.engine.work import RoundSignals, Task, Work
from edgesim.folder.records import read_table
from edgesim.radio.bandwidth import min_bandwidth_hz
from edgesim.radio.grant import Grant
from edgesim.radio.link import ShannonLink
from edgesim.simulation import composition as simulation

MILLION = size(1_000_000, 1000)


def config(devices: int, rounds: int, policy: str = "random", admission: str = "count") -> RunConfig:
    """Thirty uploads a round of the paper's CNN, shadowing redrawn each round; or as many as fit the band."""
    by_count = {"admission": "count", "count": 30, "allocator": "equal_share"} if admission == "count" else {}
    return parse(
        {
            "rounds": rounds,
            "devices": {"count": devices},
            "data": {"dataset": "none", "partition": "fedteddi"},
            "learning": {"training": "none", "pretrain": True},
            "selection": {"policy": policy},
            "round": {"tmax_s": 6.0, "payload_bits": 17_881_664.0, "computes": "selected", **by_count},
        },
        "benchmark",
    )


@pytest.mark.parametrize("policy", ["random", "best-channel"])
def test_a_thousand_rounds_of_ten_thousand_devices(benchmark, tmp_path, policy):
    """Aim: under 10 s."""
    devices, rounds = size((10_000, 1000), (100, 3))
    benchmark.pedantic(lambda: simulation.run(config(devices, rounds, policy), tmp_path), rounds=1)
    assert read_table(tmp_path, "rounds")["selected"].tolist() == [30] * rounds


@pytest.mark.parametrize("devices", size([1_000, 10_000, 100_000, 1_000_000], [100, 1_000]))
def test_the_cost_of_a_round_over_the_number_of_devices(benchmark, tmp_path, devices):
    """Aim: at most 100 ms per round at a million."""
    rounds = size(20, 2)
    benchmark.pedantic(lambda: simulation.run(config(devices, rounds), tmp_path), rounds=1)
    timing = read_table(tmp_path, "timing")
    benchmark.extra_info["ms_per_round"] = 1e3 * timing[timing["part"] == "round"]["wall_s"].median()
    assert read_table(tmp_path, "rounds")["selected"].tolist() == [30] * rounds


@pytest.mark.parametrize(("policy", "admission"), [("best-channel", "count"), ("random", "band")])
def test_a_round_of_a_million_devices_all_of_whose_channels_are_looked_at(benchmark, tmp_path, policy, admission):
    """No aim of its own: a million draws of shadowing a round, and as many least bandwidths."""
    benchmark.pedantic(lambda: simulation.run(config(MILLION, size(5, 2), policy, admission), tmp_path), rounds=1)
    timing = read_table(tmp_path, "timing")
    benchmark.extra_info["ms_per_round"] = 1e3 * timing[timing["part"] == "round"]["wall_s"].median()
    assert (read_table(tmp_path, "rounds")["selected"] >= 1).all()


WORLDS: dict[str, dict] = {
    "plain": {},
    "three-cells": {"topology": {"file": "three-cells"}},
    "batteries": {"devices": {"battery_j": 1e4, "battery_start": "drawn", "recharge_w": 2.0}},
    "bernoulli": {"availability": {"model": "bernoulli", "probability": 0.5, "slot_s": 10.0}},
    "renewal": {"availability": {"model": "renewal"}},
}


def in_world(name: str, devices: int, rounds: int) -> RunConfig:
    """`config` with further sections."""
    values = config(devices, rounds).model_dump(exclude_none=True, by_alias=True, exclude_unset=True)
    for section, keys in WORLDS[name].items():
        values[section] = values.get(section, {}) | keys
    return parse(values, "benchmark")


@pytest.mark.parametrize("world", WORLDS)
def test_the_memory_of_an_idle_device(benchmark, tmp_path, world):
    """Aim: at most 100 bytes each, of all that a run keeps between rounds."""
    devices, kept = size(200_000, 1000), []

    def run() -> None:
        tracemalloc.start()
        simulation.run(in_world(world, devices, 2), tmp_path, lambda _: kept.append(tracemalloc.get_traced_memory()[0]))
        tracemalloc.stop()

    benchmark.pedantic(run, rounds=1)
    benchmark.extra_info["bytes_per_device"] = kept[-1] / devices


@pytest.mark.parametrize("world", WORLDS)
def test_a_round_of_a_million_devices_in_other_worlds(benchmark, tmp_path, world):
    """From the end of a round to the end of the next; aim: at most 100 ms."""
    ends_s: list[float] = []
    rounds = size(6, 2)
    settings = in_world(world, MILLION, rounds)
    benchmark.pedantic(
        lambda: simulation.run(settings, tmp_path, lambda _: ends_s.append(time.perf_counter())), rounds=1
    )
    benchmark.extra_info["ms_per_round"] = 1e3 * float(np.median(np.diff(ends_s)))
    assert len(ends_s) == rounds


def test_least_bandwidths_of_a_million_devices(benchmark):
    """Aim: under 1 s."""
    rng = np.random.default_rng(0)
    left_s, rx_power_w = rng.uniform(0.1, 1.0, MILLION), 10 ** rng.uniform(-14, -10, MILLION)
    needs_hz = benchmark(lambda: min_bandwidth_hz(17_881_664.0, left_s, rx_power_w, 4e-21))
    assert np.isfinite(needs_hz).mean() > 0.5


def test_tasks_per_second_beside_a_bare_simpy_loop(benchmark):
    """Aim: at least half the rate of a bare loop of as many tasks.

    The engine plays rounds of 30 tasks that compute and send over a reserved band, decided beforehand; the bare loop
    plays as many rounds of 30 processes that wait twice. Neither decides or writes.
    """
    rounds, devices = size(1000, 5), 30

    def engine() -> float:
        clock = Clock()
        band = ReservedBand(clock, ShannonLink(4e-21))

        def server():
            for _ in range(rounds):
                over, arrived = clock.event(), []

                def on_arrived(task, over=over, arrived=arrived):
                    arrived.append(task)
                    if len(arrived) == devices:
                        over.succeed()

                signals = RoundSignals(
                    [band], clock.event(), clock.now + 9.0, 1e-9, lambda _: None, on_arrived, lambda _: None, None, None
                )
                for device in range(devices):
                    task = Task(device, 1e6, 0.0, 0, 0, 0.0, 0.1 + 0.01 * device, np.inf)
                    task.taken, task.grant = True, Grant(20e6 / devices, 1e-11, 1e6)
                    Work(clock, task, signals)
                yield over

        return rate(clock, clock.process(server()))

    def bare() -> float:
        environment = simpy.Environment()

        def device():
            yield environment.timeout(0.2)
            yield environment.timeout(0.8)

        def server():
            for _ in range(rounds):
                yield environment.all_of([environment.process(device()) for _ in range(devices)])

        return rate(environment, environment.process(server()))

    def rate(environment: simpy.Environment, until: simpy.Process) -> float:
        """Tasks per second of processor time."""
        started_s = time.process_time()
        environment.run(until)
        return rounds * devices / (time.process_time() - started_s)

    rates = np.array([(engine(), bare()) for _ in range(size(5, 1))])
    benchmark.pedantic(engine, rounds=1)
    benchmark.extra_info["tasks_per_s"], benchmark.extra_info["bare_tasks_per_s"] = rates.max(axis=0)
    benchmark.extra_info["ratio"] = float(np.divide(*rates.max(axis=0)))
    assert (rates > 0).all()


@pytest.mark.parametrize("uploads", size([30, 300, 3000], [3, 30]))
def test_a_round_of_uploads_that_share_the_band_anew(benchmark, tmp_path, uploads):
    """Every start and end changes the share of everybody on the air; no aim of its own."""
    settings = parse(
        {
            "rounds": 3,
            "devices": {"count": uploads},
            "data": {"dataset": "none", "partition": "fedteddi"},
            "learning": {"training": "none", "pretrain": True},
            "radio": {"sharing": "reshared"},
            "round": {
                "tmax_s": 600.0,
                "payload_bits": 1e6,
                "admission": "count",
                "count": uploads,
                "allocator": "equal_share",
            },
        },
        "benchmark",
    )
    benchmark.pedantic(lambda: simulation.run(settings, tmp_path), rounds=1)
    timing = read_table(tmp_path, "timing")
    benchmark.extra_info["ms_per_round"] = 1e3 * timing[timing["part"] == "round"]["wall_s"].median()
    assert read_table(tmp_path, "rounds")["arrived"].tolist() == [uploads] * 3
