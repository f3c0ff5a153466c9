"""What motion costs a million devices, beside one draw of their gains in the same run.

Run with ``make bench``; the ratios go into ``extra_info`` of pytest-benchmark's output.
"""

import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from statistics import median
from typing import Any

import numpy as np
import pytest
from sizes import cpu_s, least_cpu_s, size
from whole_runs import TIMED, merged

from edgesim.config_file import parse
from edgesim.devices.places import place_in_disc
from edgesim.folder.records import NoTables
from edgesim.mobility.chords import chord_midpoints
from edgesim.mobility.models import make_paths
from edgesim.mobility.paths import Ground
from edgesim.radio.environment import Environment, load_environment
from edgesim.radio.maps import draw_maps
from edgesim.radio.squares import Squares
from edgesim.simulation.complete import complete
from edgesim.simulation.simulation import Simulation
from edgesim.streams import Streams

DEVICES = size(1_000_000, 1000)
IDS, RADIUS_M, SIDE_M = np.arange(DEVICES), 250.0, 5.0
STREAMS = Streams(1)
GROUND = Ground(RADIUS_M, *place_in_disc(IDS, RADIUS_M, 10.0, STREAMS))


def cell() -> Environment:
    """The cell whose gains are the yardstick."""
    environment = load_environment("fedteddi-macro")
    assert isinstance(environment, Environment)
    return environment


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """Least processor time of several calls."""
    return max(least_cpu_s({"": work}, size(times, 1))[""], 1e-9)


@pytest.fixture(scope="module")
def gains_s() -> float:
    """Seconds of one round's draw of all gains, as a run without motion makes it."""
    away_m, rounds, environment = np.hypot(GROUND.x_m, GROUND.y_m), count(), cell()
    return seconds(lambda: environment.mean_power_gain(away_m, STREAMS, IDS, next(rounds)))


@pytest.mark.parametrize("model", ["waypoint", "direction"])
def test_positions_of_a_million_devices(benchmark, gains_s, model):
    """Aims, as shares of a draw of all gains: the start, once, 12; 30 devices 0.001 (in the page's trial positions of
    all 10 s later took 0.04, and with their chords 0.27)."""
    starts = (make_paths(model, {}, GROUND, STREAMS) for _ in range(5))
    start_s = seconds(lambda: next(starts).positions(IDS, 0.0))
    moving, instants_s = make_paths(model, {}, GROUND, STREAMS), count(10.0, 10.0)
    moving.positions(IDS, 0.0)
    later_s = seconds(lambda: moving.positions(IDS, next(instants_s)))
    legs = moving.legs(IDS, 60.0)
    chords_s = seconds(lambda: chord_midpoints(legs, 60.0, SIDE_M))
    few = IDS[:: DEVICES // 30][:30]
    few_s = seconds(lambda: moving.positions(few, next(instants_s)), 20)
    benchmark.extra_info |= {
        "start": start_s / gains_s, "positions 10 s later": later_s / gains_s, "chords": chords_s / gains_s,
        "30 devices": few_s / gains_s,
    }  # fmt: skip
    x_m, y_m = benchmark.pedantic(lambda: moving.positions(IDS, next(instants_s)), rounds=size(5, 1))
    assert (np.hypot(x_m, y_m) <= RADIUS_M * (1 + 1e-9)).all()


def test_gains_on_a_map_of_a_million_places(benchmark, gains_s):
    """In the page's trial 0.34 for path loss and 0.04 for the map, of a draw of all gains."""
    squares = Squares.covering(SIDE_M, -RADIUS_M, RADIUS_M, -RADIUS_M, RADIUS_M)
    maps = draw_maps(cell(), squares, np.zeros((1, 2)), 10.0, STREAMS)
    station = np.zeros(DEVICES, dtype=np.int64)
    benchmark.extra_info["gains on the map"] = (
        seconds(lambda: maps.mean_power_gain(station, GROUND.x_m, GROUND.y_m)) / gains_s
    )
    gain = benchmark.pedantic(lambda: maps.mean_power_gain(station, GROUND.x_m, GROUND.y_m), rounds=size(5, 1))
    assert (gain > 0).all()


@contextmanager
def run_of(**sections: Any) -> Iterator[Simulation]:
    """A run whose first round is over."""
    values = merged(TIMED, {"rounds": 1_000_000, "round": {"payload_bits": 17_881_664.0}}, sections)
    with Simulation(complete(parse(values, "benchmark"))) as simulation:
        simulation.make_server(NoTables())
        simulation.begin()
        simulation.advance()
        yield simulation


def ratio(still: Mapping[str, Any], moving: Mapping[str, Any], rounds: int, turns: int) -> float:
    """Processor time of a round of devices that move beside one of devices at rest: the median over several turns.

    In each turn both runs go on for some rounds, so that what is worked out for several rounds at once counts.
    """

    def spent_s(simulation: Simulation) -> float:
        return max(cpu_s(lambda: [simulation.advance() for _ in range(rounds)]), 1e-9)

    with run_of(**still) as at_rest, run_of(**moving) as on_the_way:
        return 1.0 / median(spent_s(at_rest) / spent_s(on_the_way) for _ in range(turns))


MOTIONS = {
    "waypoint": {"model": "waypoint", "speed_mps": [1.0, 2.0], "pause_s": 30.0},
    "direction": {"model": "direction", "speed_mps": [1.0, 2.0]},
}
COUNT = {"admission": "count", "count": 30, "allocator": "equal_share", "computes": "selected"}


CELLS = {"topology": {"file": "three-cells"}}
FAST = {"mobility": {"model": "direction", "speed_mps": [30.0, 30.0]}}
CASES = {
    f"a million, {motion}, {policy}": (
        {"devices": {"count": DEVICES}, "selection": {"policy": policy}},
        {"mobility": of},
        (1, size(5, 1)),
        aim,
    )
    for motion, of in MOTIONS.items()
    for policy, aim in (("random", 1.2), ("best-channel", 1.6))
} | {
    f"thirty uploads at 30 m/s, {sharing}, {name}": (
        {"round": {"tmax_s": 2.0}, "radio": {"sharing": sharing}, **cells},
        FAST | more,
        (size(60, 2), size(15, 1)),
        1.5 if sharing == "reserved" else None,
    )
    for sharing in ("reserved", "reshared")
    for name, cells, more in (
        ("present", {}, {}),
        ("known", {}, {"round": {"path_knowledge": "known"}}),
        ("without handover", CELLS, {}),
        ("with handover", CELLS, {"handover": {}}),
    )
}
"""World, what is added to it for devices that move, rounds and turns, and the aim in times the rounds at rest."""


@pytest.mark.parametrize("name", CASES)
def test_a_round_of_moving_devices_beside_one_of_devices_at_rest(benchmark, name):
    world, moving, (rounds, turns), aim = CASES[name]
    still = merged({"round": COUNT}, world)
    times = ratio(still, merged(still, moving), rounds, turns)
    benchmark.extra_info |= {"round, moving / at rest": times, "aim": aim}
    benchmark.pedantic(lambda: None, rounds=1)
    assert times > 0


@pytest.mark.parametrize("motion", MOTIONS)
def test_memory_of_a_million_paths(benchmark, motion):
    """Aim: 60 bytes more for each device."""
    tracemalloc.start()
    paths = make_paths(motion, {}, GROUND, STREAMS)
    paths.positions(IDS, 0.0)
    benchmark.extra_info["bytes per device"] = tracemalloc.get_traced_memory()[0] / DEVICES
    tracemalloc.stop()
    benchmark.pedantic(lambda: paths.positions(IDS[:30], 1.0), rounds=1)
    assert len(IDS) == DEVICES
