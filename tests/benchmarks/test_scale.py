"""How cost grows with the devices, timing only; beside each number stands what the project aims at.

Run with ``make bench``; the figures of a machine go into ``extra_info`` of pytest-benchmark's output.
"""

import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sizes import size
from whole_runs import TIMED, merged

from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.radio.bandwidth import min_bandwidth_hz
from edgesim.simulation import composition as simulation

MILLION = size(1_000_000, 1000)


BY_COUNT = {"admission": "count", "count": 30, "allocator": "equal_share"}
WORLDS: dict[str, dict] = {
    "plain": {},
    "three-cells": {"topology": {"file": "three-cells"}},
    "batteries": {"devices": {"battery_j": 1e4, "battery_start": "drawn", "recharge_w": 2.0}},
    "bernoulli": {"availability": {"model": "bernoulli", "probability": 0.5, "slot_s": 10.0}},
    "renewal": {"availability": {"model": "renewal"}},
}


def config(devices: int, rounds: int, policy: str = "random", by_count: bool = True, world: str = "plain") -> RunConfig:
    """Thirty uploads a round of the paper's CNN, shadowing redrawn each round; or as many as fit the band."""
    a_round = {"tmax_s": 6.0, "payload_bits": 17_881_664.0, "computes": "selected"} | (BY_COUNT if by_count else {})
    values = {"rounds": rounds, "devices": {"count": devices}, "selection": {"policy": policy}, "round": a_round}
    return parse(merged(TIMED, values, WORLDS[world]), "benchmark")


def played(benchmark, folder, settings: RunConfig) -> pd.DataFrame:
    """Rounds of a run, of whose time the median is noted."""
    benchmark.pedantic(lambda: simulation.run(settings, folder), rounds=1)
    timing = read_table(folder, "timing")
    benchmark.extra_info["ms_per_round"] = 1e3 * timing[timing["part"] == "round"]["wall_s"].median()
    return read_table(folder, "rounds")


@pytest.mark.parametrize("policy", ["random", "best-channel"])
def test_a_thousand_rounds_of_ten_thousand_devices(benchmark, tmp_path, policy):
    """Aim: under 10 s."""
    devices, rounds = size((10_000, 1000), (100, 3))
    rows = played(benchmark, tmp_path, config(devices, rounds, policy))
    assert rows["selected"].tolist() == [30] * rounds


@pytest.mark.parametrize("devices", size([1_000, 10_000, 100_000, 1_000_000], [100, 1_000]))
def test_the_cost_of_a_round_over_the_number_of_devices(benchmark, tmp_path, devices):
    """Aim: at most 100 ms per round at a million."""
    rounds = size(20, 2)
    assert played(benchmark, tmp_path, config(devices, rounds))["selected"].tolist() == [30] * rounds


@pytest.mark.parametrize(("policy", "by_count"), [("best-channel", True), ("random", False)])
def test_a_round_of_a_million_devices_all_of_whose_channels_are_looked_at(benchmark, tmp_path, policy, by_count):
    """No aim of its own: a million draws of shadowing a round, and as many least bandwidths."""
    assert (played(benchmark, tmp_path, config(MILLION, size(5, 2), policy, by_count))["selected"] >= 1).all()


@pytest.mark.parametrize("world", WORLDS)
def test_the_memory_of_an_idle_device(benchmark, tmp_path, world):
    """Aim: at most 100 bytes each, of all that a run keeps between rounds."""
    devices, kept = size(200_000, 1000), []

    def run() -> None:
        tracemalloc.start()
        settings = config(devices, 2, world=world)
        simulation.run(settings, tmp_path, lambda _: kept.append(tracemalloc.get_traced_memory()[0]))
        tracemalloc.stop()

    benchmark.pedantic(run, rounds=1)
    benchmark.extra_info["bytes_per_device"] = kept[-1] / devices


@pytest.mark.parametrize("world", WORLDS)
def test_a_round_of_a_million_devices_in_other_worlds(benchmark, tmp_path, world):
    """From the end of a round to the end of the next; aim: at most 100 ms."""
    ends_s: list[float] = []
    rounds = size(6, 2)
    settings = config(MILLION, rounds, world=world)
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


@pytest.mark.parametrize("uploads", size([30, 300, 3000], [3, 30]))
def test_a_round_of_uploads_that_share_the_band_anew(benchmark, tmp_path, uploads):
    """Every start and end changes the share of everybody on the air; no aim of its own."""
    shared = {
        "rounds": 3,
        "devices": {"count": uploads},
        "radio": {"sharing": "reshared"},
        "round": BY_COUNT | {"tmax_s": 600.0, "payload_bits": 1e6, "count": uploads},
    }
    rows = played(benchmark, tmp_path, parse(merged(TIMED, shared), "benchmark"))
    assert rows["arrived"].tolist() == [uploads] * 3


@pytest.mark.parametrize("buffer", [10, 100])
def test_finished_tasks_per_second_of_fedbuff(benchmark, tmp_path, buffer):
    """Aim: 10,000 per second of wall time, 1,000 devices at work of 100,000."""
    tasks, devices, at_work = size((20_000, 100_000, 1000), (200, 1000, 100))
    knobs = {"protocol": "buffered", "protocol_options": {"buffer": buffer}, "admission": "count", "count": at_work}
    values = {"rounds": tasks // buffer, "devices": {"count": devices}, "round": knobs | {"payload_bits": 1e6}}
    wall_s, cpu_s = -time.perf_counter(), -time.process_time()
    rows = played(benchmark, tmp_path, parse(merged(TIMED, values, {"round": {"tmax_s": 10.0}}), "benchmark"))
    wall_s, cpu_s = wall_s + time.perf_counter(), cpu_s + time.process_time()
    benchmark.extra_info |= {"tasks_per_s": tasks / wall_s, "tasks_per_cpu_s": tasks / cpu_s}
    assert rows["arrived"].sum() == tasks
