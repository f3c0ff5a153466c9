"""Episodes beside runs: what a decision from outside costs, and how long a reset takes."""

import time
from statistics import median

import numpy as np
from sizes import IS_LEAST, cpu_s, size
from whole_runs import TIMED

import edgesim
from edgesim.config_file import parse
from edgesim.engine.server import RunEnd
from edgesim.folder.records import NoTables
from edgesim.simulation.complete import complete
from edgesim.simulation.simulation import Simulation

MOST, MOST_RESET_S = 1.05, 0.02
"""Aims: time of an episode's steps over that of the run's rounds, and seconds of a reset."""
ROUNDS, TURNS, RESETS = size((200, 15, 50), (5, 1, 2))
CONFIG = TIMED | {
    "rounds": ROUNDS,
    "devices": {"count": 30},
    "selection": {"policy": "best-channel"},
    "round": {"payload_bits": 17_881_664.0, "tmax_s": 1.0},
}


def rounds_s(seed):
    """CPU seconds of the rounds of a run whose policy decides."""
    with Simulation(complete(parse(CONFIG | {"seed": seed}, "benchmark"))) as simulation:
        simulation.make_server(NoTables())
        simulation.begin()
        begun_s = time.process_time()
        while not isinstance(simulation.advance(), RunEnd):
            pass
        return time.process_time() - begun_s


def steps_s(seed):
    """CPU seconds of an episode's steps in which the same devices are offered."""
    with edgesim.episode(CONFIG) as episode:
        turn = episode.reset(seed)
        begun_s = time.process_time()
        while turn is not None:
            view = turn.view
            turn = episode.decide(view.ids[np.lexsort((view.ids, -np.asarray(view.gain)))])
        return time.process_time() - begun_s


def test_steps_of_an_episode_beside_rounds_of_a_run():
    """Interleaved turns, the least time of each; the same devices are taken."""
    pairs = [(rounds_s(0), steps_s(0)) for _ in range(1 + TURNS)]
    run_s, episode_s = (min(took) for took in zip(*pairs[1:], strict=True))
    print(f"{1e3 * run_s / ROUNDS:.2f} ms a round, an episode's step {episode_s / run_s:.3f} times that")
    assert IS_LEAST or episode_s / run_s <= MOST


def test_a_reset_of_30_devices():
    """CPU time after the first, each with another seed."""
    took_s = []
    with edgesim.episode(CONFIG) as episode:
        for seed in range(RESETS):
            took_s.append(cpu_s(lambda seed=seed: episode.reset(seed)))
    print(f"{1e3 * median(took_s[1:]):.1f} ms a reset, at best {1e3 * min(took_s[1:]):.1f} ms")
    assert IS_LEAST or median(took_s[1:]) <= MOST_RESET_S
