"""One round, row by row: every table of the specification's golden round.

Three devices, B = 500 kHz, payload 1 Mbit, p/n = 1e8 Hz, Tmax = 1 s, delays 0.2, 0.5 and 0.7 s; planning law
0.1 s + Exp(mean 0.2 s).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

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
from edgesim.traces.availability import Availability

NOISE_W_PER_HZ = 1e-20


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


@dataclass(frozen=True)
class Leaves(Availability):
    """Everybody is there, but one device leaves at an instant."""

    device: int = -1
    t_s: float = np.inf

    def available(self, ids, t_s):
        return np.ones(len(ids), dtype=bool)

    def available_until(self, ids, t_s, horizon_s=np.inf):
        return np.where(ids == self.device, self.t_s, np.inf)

    def next_available(self, ids, t_s):
        return np.broadcast_to(t_s, len(ids))

    def next_time_with(self, count, t_s):
        return t_s

    def next_change(self, t_s):
        return self.t_s if t_s < self.t_s else np.inf


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


def play(folder: Path, order, availability=None, devices=None, **knobs) -> tuple[pd.Series, pd.DataFrame]:
    """One golden round; its row of ``rounds`` and its rows of ``activities``."""
    play_rounds(folder, 1, order, availability, devices, **knobs)
    return records.read_table(folder, "rounds").iloc[0], records.read_table(folder, "activities")


def play_rounds(
    folder: Path,
    rounds: int,
    order,
    availability=None,
    devices=None,
    interruption="abort",
    staleness=None,
    radio=None,
    **knobs,
) -> None:
    """Some golden rounds, one after another."""
    config = simulation.complete(
        parse(
            {
                "devices": {"count": 3, **(devices or {})},
                "radio": {"bandwidth_hz": 500_000.0, **(radio or {})},
                "availability": {"interruption": interruption},
                "round": {"tmax_s": 1.0, "payload_bits": 1e6, **knobs},
                "staleness": staleness or {},
                "data": {"dataset": "none", "partition": "fedteddi"},
                "learning": {"training": "none", "pretrain": True},
            },
            "golden",
        )
    )
    streams = Streams(0)
    federation = make_federation(config, streams)
    real = make_world(config, streams)
    environment = real.environment.model_copy(
        update={"noise_dbm_per_hz": 10 * np.log10(NOISE_W_PER_HZ) + 30, "noise_figure_db": 0.0}
    )
    world = GoldenWorld(config, streams, real.population, real.places, environment, availability or Leaves())
    writer = records.RunWriter(folder, simulation.as_toml(config), {})
    parts = RunParts(
        world,
        InOrder(order),
        TimingOnlyLearner(config, federation, streams),
        writer,
        make_backhaul(world.topology, 1e6, hierarchical=False),
    )
    server = Server(parts, make_protocol(config.round).begin(parts))
    numbers = [RoundNumber(k, 1, k, rounds, k == rounds) for k in range(1, rounds + 1)]
    server.begin(iter(numbers))
    while not isinstance(server.advance(), RunEnd):
        pass
    writer.close("finished")


def rows(activities: pd.DataFrame) -> list[tuple]:
    columns = ["device", "activity", "t_start_s", "t_end_s", "outcome", "bits", "bandwidth_hz"]
    return list(activities[columns].itertuples(index=False, name=None))


def same(found: list[tuple], expected: list[tuple]) -> None:
    assert [row[:2] + row[4:5] for row in found] == [row[:2] + row[4:5] for row in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine[2:4] == pytest.approx(theirs[2:4], abs=1e-9), theirs
        assert mine[5] == pytest.approx(theirs[5], abs=1e-3), theirs
        assert mine[6] == pytest.approx(theirs[6], abs=1e-3), theirs


def test_known_delays_give_the_two_uploads_that_end_at_the_deadline(tmp_path):
    round_, activities = play(tmp_path, [0, 1, 2])
    same(
        rows(activities),
        [
            (0, "compute", 0, 0.2, "done", 0, 0),
            (0, "upload", 0.2, 1.0, "done", 1e6, 130_418.720),
            (1, "compute", 0, 0.5, "done", 0, 0),
            (1, "upload", 0.5, 1.0, "done", 1e6, 227_748.247),
            (2, "compute", 0, 0.7, "unscheduled", 0, 0),
        ],
    )
    assert round_["t_end_s"] == 1.0
    assert list(round_[["candidates", "selected", "arrived", "late", "dropped"]]) == [3, 2, 2, 0, 0]
    assert round_["bits_up"] == 2e6


def test_equal_finish_spreads_the_leftover_and_ends_the_round_earlier(tmp_path):
    round_, activities = play(tmp_path, [0, 1, 2], leftover="equal_finish")
    uploads = activities[activities["activity"] == "upload"]
    assert round_["t_end_s"] == pytest.approx(0.861332627, abs=1e-9)
    assert list(uploads["bandwidth_hz"]) == pytest.approx([163_279.567, 336_720.433], abs=1e-3)
    assert list(uploads["t_end_s"]) == pytest.approx([0.861332627] * 2, abs=1e-9)
    assert list(round_[["candidates", "selected", "arrived", "late", "dropped", "bits_up"]]) == [3, 2, 2, 0, 0, 2e6]


def test_a_device_that_leaves_mid_upload_is_dropped_at_that_instant_and_the_round_waits_for_the_deadline(
    tmp_path,
):
    round_, activities = play(tmp_path, [0, 1, 2], Leaves(1, 0.6))
    same(
        rows(activities),
        [
            (0, "compute", 0, 0.2, "done", 0, 0),
            (0, "upload", 0.2, 1.0, "done", 1e6, 130_418.720),
            (1, "compute", 0, 0.5, "done", 0, 0),
            (1, "upload", 0.5, 0.6, "dropped", 200_000, 227_748.247),
            (2, "compute", 0, 0.7, "unscheduled", 0, 0),
        ],
    )
    assert round_["t_end_s"] == 1.0
    assert list(round_[["selected", "arrived", "late", "dropped"]]) == [2, 1, 0, 1]
    assert round_["bits_up"] == pytest.approx(1.2e6, abs=1e-3)


def test_reported_delays_leave_time_from_the_last_report_on(tmp_path):
    round_, activities = play(tmp_path, [0, 1, 2], delay_knowledge="reported", report_by_s=1.0)
    same(
        rows(activities),
        [
            (0, "compute", 0, 0.2, "done", 0, 0),
            (0, "upload", 0.7, 1.0, "done", 1e6, 422_279.536),
            (1, "compute", 0, 0.5, "unscheduled", 0, 0),
            (2, "compute", 0, 0.7, "unscheduled", 0, 0),
        ],
    )
    assert round_["t_end_s"] == 1.0
    assert list(round_[["candidates", "selected", "arrived", "late", "dropped", "bits_up"]]) == [3, 1, 1, 0, 0, 1e6]


def test_planned_on_a_quantile_the_round_ends_at_the_last_arrival(tmp_path):
    round_, activities = play(tmp_path, [0, 1, 2], delay_knowledge="planned")
    same(
        rows(activities),
        [
            (0, "compute", 0, 0.2, "done", 0, 0),
            (0, "upload", 0.2, 0.500853545, "done", 1e6, 420_815.506),
            (1, "compute", 0, 0.5, "unscheduled", 0, 0),
            (2, "compute", 0, 0.500853545, "unscheduled", 0, 0),
        ],
    )
    assert round_["t_end_s"] == pytest.approx(0.500853545, abs=1e-9)
    assert list(round_[["selected", "arrived", "late"]]) == [1, 1, 0]


def test_planned_too_tightly_an_upload_is_late_and_its_row_ends_at_the_close(tmp_path):
    round_, activities = play(tmp_path, [2, 0, 1], delay_knowledge="planned")
    same(
        rows(activities),
        [
            (0, "compute", 0, 0.2, "unscheduled", 0, 0),
            (1, "compute", 0, 0.5, "unscheduled", 0, 0),
            (2, "compute", 0, 0.7, "done", 0, 0),
            (2, "upload", 0.7, 1.0, "late", 997_162.921, 420_815.506),
        ],
    )
    assert round_["t_end_s"] == 1.0
    assert list(round_[["candidates", "selected", "arrived", "late", "dropped"]]) == [3, 1, 0, 1, 0]
    assert round_["bits_up"] == pytest.approx(997_162.921, abs=1e-3)


def test_close_at_the_deadline_waits_even_when_everyone_arrived(tmp_path):
    round_, _ = play(tmp_path, [0, 1, 2], delay_knowledge="planned", close="deadline")
    assert round_["t_end_s"] == 1.0
    assert round_["arrived"] == 1


def test_a_round_that_schedules_nobody_lasts_until_the_deadline(tmp_path):
    round_, _ = play(tmp_path, [])
    assert round_["t_end_s"] == 1.0
    assert round_["selected"] == 0


def test_only_those_taken_compute_when_the_selected_compute(tmp_path):
    _, activities = play(tmp_path, [2, 0], computes="selected")
    assert set(activities["device"]) == {2}
    assert "unscheduled" not in set(activities["outcome"])


def test_reports_that_come_too_late_are_no_candidates(tmp_path):
    round_, activities = play(tmp_path, [2, 1, 0], delay_knowledge="reported", report_by_s=0.5)
    uploads = activities[activities["activity"] == "upload"]
    # Device 2 reports at 0.7 s only; device 1 at the very instant, which counts.
    assert list(uploads["device"]) == [0, 1]
    assert list(uploads["t_start_s"]) == pytest.approx([0.5, 0.5])
    assert round_["selected"] == 2


def test_a_silent_drop_out_keeps_the_server_waiting_for_reports_until_report_by_s(tmp_path):
    _, activities = play(tmp_path, [1, 0], Leaves(2, 0.3), delay_knowledge="reported", report_by_s=0.55)
    assert rows(activities)[-1][:5] == (2, "compute", 0.0, 0.3, "dropped")
    uploads = activities[activities["activity"] == "upload"]
    assert list(uploads["t_start_s"]) == pytest.approx([0.55] * len(uploads))
    assert len(uploads) >= 1


def test_a_download_comes_first_and_costs_time_and_energy(tmp_path):
    round_, activities = play(tmp_path, [0], download_s=0.1)
    first = activities.iloc[0]
    assert (first["activity"], first["t_end_s"], first["energy_j"]) == ("download", 0.1, pytest.approx(0.09))
    assert first["bits"] == 1e6
    assert list(round_[["bits_down", "bits_up"]]) == [3e6, 1e6]
    assert activities.iloc[2]["activity"] == "upload"
    assert activities.iloc[2]["t_start_s"] == pytest.approx(0.3)


def test_energy_is_power_times_the_seconds_of_each_row(tmp_path):
    round_, activities = play(tmp_path, [0, 1, 2], Leaves(1, 0.6))
    power_w = {"compute": 2.0, "upload": 10 ** ((23 - 30) / 10) / 0.35}
    lengths = activities["t_end_s"] - activities["t_start_s"]
    expected = lengths * activities["activity"].map(power_w)
    assert list(activities["energy_j"]) == pytest.approx(list(expected))
    assert round_["energy_j"] == pytest.approx(expected.sum())
