"""The world of the specification's golden round, and servers of worlds whose delays and powers are given.

Three devices, B = 500 kHz, payload 1 Mbit, p/n = 1e8 Hz, Tmax = 1 s, delays 0.2, 0.5 and 0.7 s; planning law
0.1 s + Exp(mean 0.2 s).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from whole_runs import TIMED, Played, merged

from edgesim.config_file import parse
from edgesim.devices.topology import make_backhaul
from edgesim.engine.make_world import make_world
from edgesim.engine.process import RoundNumber
from edgesim.engine.protocols import make_protocol
from edgesim.engine.run_parts import RunParts
from edgesim.engine.server import RunEnd, Server
from edgesim.engine.world import World
from edgesim.folder import records
from edgesim.learning.federation import make_federation
from edgesim.learning.timing_only import TimingOnlyLearner
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals

NOISE_W_PER_HZ = 1e-20
UPLOAD_W = 10 ** ((23 - 30) / 10) / 0.35


@dataclass(frozen=True)
class GoldenWorld(World):
    """The page's world: delays, delay law and received power are given, not drawn."""

    def rx_power_w(self, ids, gain):
        return np.full(len(ids), 1e8 * NOISE_W_PER_HZ)

    def gain(self, ids, draws, t_s, station):
        return np.ones(len(ids))

    def compute_s(self, ids, draws, samples):
        return np.array([0.2, 0.5, 0.7])[ids]

    def planned_compute_s(self, ids, samples, quantile):
        return np.full(len(ids), 0.1 - 0.2 * np.log(1 - quantile))


def leaves(device: int = 0, t_s: float = np.inf) -> IntervalTable:
    """Everybody is there, but one device leaves at an instant."""
    ends_s = np.where(np.arange(3) == device, t_s, np.inf)
    return IntervalTable(Intervals(np.arange(3), np.zeros(3), ends_s, np.full(3, np.inf), "golden"), "absent")


class InOrder:
    """Offers devices in a given order."""

    looks_at = frozenset()

    def __init__(self, order):
        self.order = order

    def choose(self, view):
        for device in self.order:
            if device in view.ids:
                yield device

    def hear(self, report):
        self.report = report


def serve(folder: Path, config, rounds: int, world, selector, learner, bits: float, note=lambda server: None) -> Played:
    """Rounds of a server over parts that are given, after each of which ``note`` is called."""
    writer = records.RunWriter(folder, simulation.as_toml(config), {})
    parts = RunParts(world, selector, learner, writer, make_backhaul(world.topology, bits, hierarchical=False))
    server = Server(parts, make_protocol(config.round).begin(parts))
    server.begin(iter([RoundNumber(k, 1, k, rounds, k == rounds) for k in range(1, rounds + 1)]))
    while not isinstance(server.advance(), RunEnd):
        note(server)
    writer.close("finished")
    return Played(folder, None)


def play(folder: Path, order, availability=None, rounds=1, selector=InOrder, sections=None, **knobs) -> Played:
    """Some golden rounds, one after another, with ``knobs`` of section ``round``."""
    base = {
        "devices": {"count": 3},
        "radio": {"bandwidth_hz": 500_000.0},
        "availability": {"interruption": "abort"},
        "round": {"tmax_s": 1.0, "payload_bits": 1e6, **knobs},
    }
    config = simulation.complete(parse(merged(TIMED, base, sections or {}), "golden"))
    streams = Streams(0)
    real = make_world(config, streams)
    noise = {"noise_dbm_per_hz": 10 * np.log10(NOISE_W_PER_HZ) + 30, "noise_figure_db": 0.0}
    environment = real.environment.model_copy(update=noise)
    world = GoldenWorld(config, streams, real.population, real.places, environment, availability or leaves())
    learner = TimingOnlyLearner(config, make_federation(config, streams), streams)
    return serve(folder, config, rounds, world, selector(order), learner, 1e6)


def assert_rows(activities: pd.DataFrame, expected: list[tuple]) -> None:
    """Device, activity, start, end, outcome, bits and bandwidth of each row."""
    columns = ["device", "activity", "t_start_s", "t_end_s", "outcome", "bits", "bandwidth_hz"]
    found = list(activities[columns].itertuples(index=False, name=None))
    assert [row[:2] + row[4:5] for row in found] == [row[:2] + row[4:5] for row in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine[2:4] == pytest.approx(theirs[2:4], abs=1e-9), theirs
        assert mine[5:] == pytest.approx(theirs[5:], abs=1e-3), theirs
