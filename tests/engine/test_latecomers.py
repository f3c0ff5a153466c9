"""Uploads that go on after the deadline, worked by hand on the golden round (planned, order 2, 0, 1).

Device 2 uploads from 0.7 s on 420,815.506 Hz and would end at 1.000853545 s, after the deadline of 1 s.
"""

from pathlib import Path

import golden
import numpy as np
import pytest
from cell_files import write_cells
from stopped_runs import assert_stops_change_nothing
from whole_runs import TIMED, merged, phones, play, stays, write_rows

from edgesim.config_file import parse
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.fedavg import FedAvg

HUNDRED = Path(__file__).parents[1] / "compared" / "hundred-classes.npz"
KEPT = {"delay_knowledge": "planned", "late": "keep"}
ONE = {"admission": "count", "count": 1}
TENS = merged(TIMED, {"learning": {"steps": 1, "batch_size": 10}})


def test_a_latecomer_arrives_in_the_next_round_whose_band_lacks_its_reservation(tmp_path):
    played = golden.play(tmp_path, [2, 0, 1], rounds=3, **KEPT)
    rounds, acts = played.rounds, played.activities
    # Round 2: 79,184.494 Hz are left, and the two others need 420,815.506 Hz each, so nobody is taken.
    assert rounds["selected"].tolist() == [1, 0, 1]
    assert rounds["candidates"].tolist() == [3, 2, 3]
    assert rounds["late"].tolist() == [1, 0, 1]
    assert rounds["t_end_s"].tolist() == [1.0, 2.0, 3.0]
    # The last round breaks off whoever is still on the air: device 2 once more, as in the golden round.
    golden.assert_rows(
        acts.query("activity == 'upload'"),
        [
            (2, "upload", 0.7, 1.000853545, "done", 1e6, 420_815.506),
            (2, "upload", 2.7, 3.0, "late", 997_162.921, 420_815.506),
        ],
    )
    assert acts.query("activity == 'upload'")["round"].tolist() == [2, 3]
    # The first round made no model, so that the one it started from is still in force.
    assert played.updates[["round", "device", "task", "staleness"]].to_numpy().tolist() == [[2, 2, 1, 0]]


@pytest.mark.parametrize(("limit", "merged"), [(0, [[1, 0, 0]]), (1, [[1, 0, 0], [2, 2, 1]])])
def test_a_latecomer_that_is_staler_than_the_limit_arrives_but_is_not_merged(tmp_path, limit, merged):
    """On a band of 900,000 Hz device 0 fits beside device 2, so that round 1 makes a model."""
    sections = {"staleness": {"limit": limit}, "radio": {"bandwidth_hz": 9e5}}
    played = golden.play(tmp_path, [2, 0], rounds=2, sections=sections, **KEPT)
    # The limit changes nothing on the air.
    upload = played.uploads.query("device == 2").iloc[0]
    assert list(upload[["round", "t_end_s", "bits"]]) == pytest.approx([2, 1.000853545, 1e6])
    assert upload["outcome"] == "done"
    updates = played.updates
    assert updates[["round", "device", "staleness"]].to_numpy().tolist()[: len(merged)] == merged
    assert ((updates["round"] > updates["task"]).any()) == (limit == 1)


def test_no_latecomer_outlives_its_frame(tmp_path):
    knobs = {"tmax_s": 0.4, "payload_bits": 6e6, "plan_quantile": 0.3} | KEPT
    data = {"dataset": str(HUNDRED), "samples_per_device": 6}
    played = play(tmp_path, TIMED, rounds=[3, 3], round=knobs, data=data)
    acts = played.activities
    assert played.rounds["late"].iloc[2] > 0
    assert (acts["round"] > acts["task"]).any()
    assert not ((acts["task"] <= 3) & (acts["round"] > 3)).any()


def test_counts_of_a_round_are_those_at_its_close_though_latecomers_arrive_while_the_cloud_averages(tmp_path):
    topology = {"file": "one-cell", "aggregation": "hierarchical", "cloud_every": 1}
    knobs = {"payload_bits": 3e6, "plan_quantile": 0.5} | KEPT
    played = play(tmp_path, TIMED, rounds=40, topology=topology, round=knobs)
    rounds, updates = played.rounds, played.updates
    fresh = updates[updates["task"] == updates["round"]].groupby("round").size().reindex(rounds["round"], fill_value=0)
    assert (updates["task"] < updates["round"]).sum() > 40
    assert rounds["arrived"].tolist() == fresh.tolist()
    assert (rounds["selected"] == rounds["arrived"] + rounds["late"]).all()


def test_a_latecomer_that_is_done_is_a_candidate_of_the_next_round(tmp_path):
    """By hand: computes for 1 s, sends for 2 s; the round closes at 2 s, the next opens at 10 s with the same device.

    The update of round 1 and that of round 2 are both merged when round 2 closes.
    """
    links = write_rows(tmp_path / "links.csv", "device,t_s,bps", [(0, 0, 1e6), (0, 5, 4e6)])
    played = play(
        tmp_path / "run",
        TENS,
        phones(tmp_path, (0.1, 1e6)),
        stays(tmp_path, (0, 0, 2), (0, 10, 50), interruption="ignore"),
        rounds=2,
        devices={"links": {"file": links, "after_end": "hold"}},
        round={"late": "keep", "tmax_s": 2.0, "payload_bits": 2e6, **ONE},
    )
    assert played.rounds["t_start_s"].tolist() == [0.0, 10.0]
    counts = ["candidates", "selected", "arrived", "late"]
    assert played.rounds[counts].to_numpy().tolist() == [[1, 1, 0, 1], [1, 1, 1, 0]]
    columns = ["round", "device", "task", "staleness", "weight"]
    assert played.updates[columns].to_numpy().tolist() == [[2, 0, 1, 0, 0.5], [2, 0, 2, 0, 0.5]]


def test_latecomers_on_links_of_their_own_hold_no_band_from_others(tmp_path):
    """Six devices need 30 s, six 1.5 s, for a deadline of 2 s; one is taken in every round."""
    twelve = phones(tmp_path, *[(0.1, 1e5)] * 6, *[(0.1, 6e6)] * 6)
    knobs = {"late": "keep", "tmax_s": 2.0, "payload_bits": 3e6, **ONE}
    played = play(tmp_path / "run", TENS, twelve, rounds=40, round=knobs)
    assert played.rounds["selected"].tolist() == [1] * 40
    assert played.rounds["late"].sum() > 0
    assert (played.rounds["bandwidth_hz"] == 0).all()


class Unsending(FedAvg.Server):
    """Devices are sent nothing, so that the wires delay updates alone."""

    def download_bits(self, devices, round, ledger):
        return np.zeros(len(devices.ids))


class LightAtFirst(FedAvg.Local):
    """The first round's updates are a tenth of the others."""

    def upload_bits(self, devices, round, ledger):
        return super().upload_bits(devices, round, ledger) * (0.1 if round == 1 else 1.0)


class Unsent(FedAvg):
    Local = LightAtFirst
    Server = Unsending


SENDING_W = 0.2 / 0.35


def busy_wire(folder: Path) -> dict[str, object]:
    """One device; rounds of 1 s, of which it computes 0.2 s and sends 0.5 s, and its update takes 2.5 s by wire.

    In the first round, in which it sends a tenth, the update arrives after 0.5 s.
    """
    cell = write_cells(folder, {"cell": (0.0, 0.0)}, [("cell", "cloud", 4e5, 0.0)], cloud="cloud", edge_servers=[])
    battery = {"battery_j": 100.0, "battery_start": 0.5, "battery_reserve": 0.1, "recharge_w": 0.5}
    sections = {
        "rounds": 8,
        "devices": {"tx_power_dbm": 23.0103, **battery},
        "topology": {"file": cell},
        "algorithm": {"name": "unsent"},
        "round": {"late": "keep", "close": "deadline", "tmax_s": 1.0, "payload_bits": 1e6, **ONE},
    }
    return merged(TENS, phones(folder, (0.02, 2e6)), sections)


def test_a_device_works_again_while_its_updates_travel_by_wire(tmp_path, monkeypatch):
    """By hand: from round 2 on, the task of round r sends from r - 0.8 to r - 0.3 s and arrives at r + 2.2 s."""
    monkeypatch.setitem(ALGORITHMS, "unsent", Unsent)
    played = play(tmp_path / "run", busy_wire(tmp_path))
    rounds, acts, updates = played.rounds, played.activities, played.updates
    assert rounds["t_end_s"].to_numpy() == pytest.approx(np.arange(1, 9))
    assert rounds["candidates"].tolist() == [1] * 8
    assert rounds["late"].tolist() == [0] + [1] * 7
    sent = acts[acts["activity"] == "upload"].sort_values("task")
    assert sent["t_start_s"].to_numpy() == pytest.approx(np.arange(8) + 0.2)
    assert sent["t_end_s"].to_numpy() == pytest.approx([0.25, *np.arange(1, 8) + 0.7])
    # The rows of a task are those of the round in which its update arrives; the last three are still on the wire.
    assert sent["round"].tolist() == [1, 5, 6, 7, 8, 8, 8, 8]
    assert sent["outcome"].tolist() == ["done"] * 5 + ["late"] * 3
    # Rounds 2 to 4 make no model, so the task of round r - 3 has missed those of the rounds from 5 on before r.
    expected = [[1, 1, 0], *([round, round - 3, round - 5] for round in range(5, 9))]
    assert updates[["round", "task", "staleness"]].to_numpy().tolist() == expected
    # An update that arrives while the device computes or sends changes nothing about the power that it draws.
    charge = played.metrics.query("name == 'battery_j' and key == 'mean'")
    spent_j = acts.groupby("task")["energy_j"].sum().to_numpy()
    assert spent_j[1:] == pytest.approx(0.2 * 2.0 + 0.5 * SENDING_W)
    assert charge["value"].to_numpy() == pytest.approx(50 + 0.5 * np.arange(1, 9) - np.cumsum(spent_j))


def test_updates_on_the_wire_beside_other_work_of_their_device_are_resumed(tmp_path, monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "unsent", Unsent)
    assert_stops_change_nothing(parse(busy_wire(tmp_path), "test"), tmp_path / "runs", (2, 3, 5))
