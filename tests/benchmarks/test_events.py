"""Events of whole timing-only runs beside those of a bare SimPy loop; beside the numbers stands what is aimed at.

Run with ``make bench``; the figures of a machine go into ``extra_info`` of pytest-benchmark's output.
"""

import time
from typing import ClassVar

import numpy as np
import pytest
import simpy
from sizes import size
from whole_runs import TIMED, merged

from edgesim.config_file import parse
from edgesim.engine import run_parts
from edgesim.engine.clock import Clock
from edgesim.folder.records import read_table
from edgesim.simulation import composition as simulation

DEVICES = 30
ROUNDS, TRIES = size((300, 5), (3, 1))
SPARED = 3
"""Events that a process of SimPy for each task would take beside those of a run: its start, word of the end of its
upload, and its own end. They are counted as if they happened, since the aims were set on them, and since a run that
needs fewer events for the same work is not a slower one."""
PLAYED_AHEAD = 5
"""The same of tasks that are played ahead: also the ends of computing and upload, of which a round has one."""
FEDBUFF = {"protocol": "buffered", "admission": "count", "count": 10, "protocol_options": {"buffer": 10}}


class Watched(Clock):
    """A clock that knows since when its events have been processed."""

    made: ClassVar[list["Watched"]] = []

    def __init__(self):
        super().__init__()
        self.began_s = None
        self.made.append(self)

    def step(self):
        if self.began_s is None:
            self.began_s = time.process_time()
            # From now on the class's own, which costs nothing more.
            self.step = super().step
        super().step()

    def processed(self):
        """Every event takes a number of its own when it is scheduled."""
        return next(self._eid) - len(self._queue)


def bare(events: int) -> float:
    """Events per second of as many timeouts, shared out over a process for each device."""
    environment = simpy.Environment()

    def device():
        for _ in range(events // DEVICES):
            yield environment.timeout(1.0)

    for _ in range(DEVICES):
        environment.process(device())
    began_s = time.process_time()
    environment.run()
    return next(environment._eid) / (time.process_time() - began_s)


@pytest.mark.parametrize(
    ("band", "knobs", "spared"),
    [("reserved", {}, PLAYED_AHEAD), ("reshared", {}, SPARED), ("reserved", FEDBUFF, SPARED)],
    ids=["reserved", "reshared", "fedbuff"],
)
def test_events_of_whole_runs_beside_a_bare_simpy_loop(benchmark, tmp_path, monkeypatch, band, knobs, spared):
    """Aim: 0.4 of the bare loop's events a second where uploads keep their reservation, 0.2 elsewhere.

    Events are those of a run that gives each task a process of its own (`SPARED`). A run plays 300 rounds (or models
    of 10 updates) of 30 devices that compute and send the paper's CNN, with every decision and every row. Counted is
    the processor time from its first event until its folder is closed; what comes before (imports, the config, the
    world, a folder) is told apart. The runs and the bare loop take turns, and the best of each is compared.
    """
    a_round = {"tmax_s": 6.0, "payload_bits": 17_881_664.0, **knobs}
    values = {"rounds": ROUNDS, "devices": {"count": DEVICES}, "radio": {"sharing": band}, "round": a_round}
    settings = parse(merged(TIMED, values), "benchmark")
    monkeypatch.setattr(run_parts, "Clock", Watched)
    rates, starts_s, own, number = [], [], [], iter(range(TRIES + 1))

    def run() -> int:
        started_s = time.process_time()
        folder = tmp_path / str(next(number))
        simulation.run(settings, folder)
        ended_s, clock = time.process_time(), Watched.made.pop()
        starts_s.append(clock.began_s - started_s)
        own.append(clock.processed())
        tasks = read_table(folder, "activities")[["device", "task"]].drop_duplicates()
        events = own[-1] + spared * len(tasks) - ROUNDS * (spared == PLAYED_AHEAD)
        rates.append((events / (ended_s - clock.began_s), bare(events)))
        return events

    for _ in range(TRIES):
        events = run()
    benchmark.pedantic(run, rounds=1)
    whole, loop = np.max(rates, axis=0)
    rows = len(read_table(tmp_path / "0", "activities"))
    benchmark.extra_info |= {
        "events": events,
        "own_events": own[-1],
        "activities": rows,
        "events_per_s": whole,
        "bare_events_per_s": loop,
        "ratio": whole / loop,
        "ms_per_round": 1e3 * events / whole / ROUNDS,
        "start_s": min(starts_s),
    }
    assert rows >= 2 * (10 if knobs else DEVICES) * ROUNDS
