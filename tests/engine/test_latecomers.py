"""Uploads that go on after the deadline, worked by hand on the golden round (planned, order 2, 0, 1).

Device 2 uploads from 0.7 s on 420,815.506 Hz and would end at 1.000853545 s, after the deadline of 1 s.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from stopped_runs import assert_stops_change_nothing

from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.fedavg import FedAvg
from edgesim.simulation import composition as simulation

HUNDRED = Path(__file__).parents[1] / "compared" / "hundred-classes.npz"
_spec = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("test_golden_round.py"))
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)


def test_a_latecomer_arrives_in_the_next_round_whose_band_lacks_its_reservation(tmp_path):
    golden.play_rounds(tmp_path, 3, [2, 0, 1], delay_knowledge="planned", late="keep")
    rounds, acts, updates = (read_table(tmp_path, name) for name in ("rounds", "activities", "updates"))
    # Round 2: 79,184.494 Hz are left, and the two others need 420,815.506 Hz each, so nobody is taken.
    assert rounds["selected"].tolist() == [1, 0, 1]
    assert rounds["candidates"].tolist() == [3, 2, 3]
    assert rounds["late"].tolist() == [1, 0, 1]
    assert rounds["t_end_s"].tolist() == [1.0, 2.0, 3.0]
    upload = acts[(acts["device"] == 2) & (acts["activity"] == "upload")].iloc[0]
    assert upload["round"] == 2
    assert list(upload[["t_start_s", "t_end_s", "bits"]]) == pytest.approx([0.7, 1.000853545, 1e6])
    assert upload["outcome"] == "done"
    # The first round made no model, so that the one it started from is still in force.
    assert updates[["round", "device", "task", "staleness"]].to_numpy().tolist() == [[2, 2, 1, 0]]
    # The last round breaks off whoever is still on the air: device 2 once more, as in the golden round.
    last = acts[(acts["round"] == 3) & (acts["activity"] == "upload")].iloc[0]
    assert last["outcome"] == "late"
    assert last["bits"] == pytest.approx(997_162.921, abs=1e-3)


@pytest.mark.parametrize(("limit", "merged"), [(0, [[1, 0, 0]]), (1, [[1, 0, 0], [2, 2, 1]])])
def test_a_latecomer_that_is_staler_than_the_limit_arrives_but_is_not_merged(tmp_path, limit, merged):
    """On a band of 900,000 Hz device 0 fits beside device 2, so that round 1 makes a model."""
    radio, knobs = {"bandwidth_hz": 9e5}, {"delay_knowledge": "planned", "late": "keep"}
    golden.play_rounds(tmp_path, 2, [2, 0], staleness={"limit": limit}, radio=radio, **knobs)
    upload = read_table(tmp_path, "activities").query("activity == 'upload' and device == 2").iloc[0]
    # The limit changes nothing on the air.
    assert list(upload[["round", "t_end_s", "bits"]]) == pytest.approx([2, 1.000853545, 1e6])
    assert upload["outcome"] == "done"
    updates = read_table(tmp_path, "updates")
    assert updates[["round", "device", "staleness"]].to_numpy().tolist()[: len(merged)] == merged
    assert ((updates["round"] > updates["task"]).any()) == (limit == 1)


def test_a_latecomer_that_leaves_is_dropped_then_and_merged_nowhere(tmp_path):
    golden.play_rounds(tmp_path, 2, [2], golden.Leaves(2, 1.0004), delay_knowledge="planned", late="keep")
    upload = read_table(tmp_path, "activities").query("activity == 'upload' and round == 2").iloc[0]
    assert (upload["outcome"], upload["t_end_s"]) == ("dropped", 1.0004)
    assert read_table(tmp_path, "updates").empty


def test_no_latecomer_outlives_its_frame(tmp_path):
    values = {
        "rounds": [3, 3],
        "learning": {"training": "none", "pretrain": True},
        "round": {
            "tmax_s": 0.4,
            "payload_bits": 6e6,
            "late": "keep",
            "delay_knowledge": "planned",
            "plan_quantile": 0.3,
        },
        "data": {"dataset": str(HUNDRED), "partition": "fedteddi", "samples_per_device": 6},
    }
    simulation.run(parse(values, "test"), tmp_path)
    acts, rounds = read_table(tmp_path, "activities"), read_table(tmp_path, "rounds")
    assert rounds["late"].iloc[2] > 0
    assert (acts["round"] > acts["task"]).any()
    assert not ((acts["task"] <= 3) & (acts["round"] > 3)).any()


@pytest.mark.parametrize(
    "way", [{}, {"leftover": "equal_finish"}, {"allocator": "equal_share"}, {"allocator": "proportional"}], ids=str
)
def test_nobody_is_taken_while_latecomers_hold_the_whole_band(tmp_path, way):
    knobs = {"tmax_s": 0.3, "late": "keep", "admission": "count", "count": 4, **way}
    config = parse(
        {
            "rounds": 12,
            "learning": {"training": "none", "pretrain": True},
            "round": {"payload_bits": 17_881_664.0, **knobs},
            "data": {"partition": "fedteddi"},
        },
        "test",
    )
    simulation.run(config, tmp_path)
    rounds = read_table(tmp_path, "rounds")
    assert set(rounds["selected"]) == {0, 4}
    assert rounds["late"].sum() > 0
    assert rounds["bandwidth_hz"].max() <= 20e6 * (1 + 1e-9)


@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_kept_latecomers_are_merged_once_and_learn(tmp_path, sharing):
    config = parse(
        {
            "seed": 1,
            "rounds": 30,
            "radio": {"fading": "rayleigh", "sharing": sharing},
            "round": {"payload_bits": 17_881_664.0, "late": "keep"},
            "selection": {"policy": "fed-cbs"},
            "data": {"partition": "fedteddi"},
            "learning": {"pretrain": True},
        },
        "test",
    )
    simulation.run(config, tmp_path)
    rounds, acts, updates = (read_table(tmp_path, name) for name in ("rounds", "activities", "updates"))
    done = acts[(acts["activity"] == "upload") & (acts["outcome"] == "done")]
    assert sorted(zip(done["round"], done["device"], strict=True)) == sorted(
        zip(updates["round"], updates["device"], strict=True)
    )
    assert (updates["staleness"] > 0).sum() > 10
    assert rounds["jobs_trained"].tolist() == [int((updates["round"] == k).sum()) for k in rounds["round"]]
    assert updates.groupby("round")["weight"].sum().to_numpy() == pytest.approx(1.0)
    assert rounds["bandwidth_hz"].max() <= 20e6 * (1 + 1e-9)
    # Nobody is at work twice at a time.
    for _, rows in acts.sort_values("t_start_s").groupby("device"):
        assert (rows["t_start_s"].to_numpy()[1:] >= rows["t_end_s"].to_numpy()[:-1] - 1e-9).all()
    assert np.isfinite(rounds["test_loss"]).all()
    assert rounds["test_accuracy"].iloc[-1] > 0.7


def test_counts_of_a_round_are_those_at_its_close_though_latecomers_arrive_while_the_cloud_averages(tmp_path):
    config = parse(
        {
            "rounds": 40,
            "topology": {"file": "one-cell", "aggregation": "hierarchical", "cloud_every": 1},
            "round": {"payload_bits": 3e6, "late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.5},
            "data": {"dataset": "none", "partition": "fedteddi"},
            "learning": {"training": "none", "pretrain": True},
        },
        "test",
    )
    simulation.run(config, tmp_path)
    rounds, updates = (read_table(tmp_path, name) for name in ("rounds", "updates"))
    fresh = updates[updates["task"] == updates["round"]].groupby("round").size().reindex(rounds["round"], fill_value=0)
    assert (updates["task"] < updates["round"]).sum() > 40
    assert rounds["arrived"].tolist() == fresh.tolist()
    assert (rounds["selected"] == rounds["arrived"] + rounds["late"]).all()


def test_a_latecomer_that_is_done_is_a_candidate_of_the_next_round(tmp_path):
    """By hand: computes for 1 s, sends for 2 s; the round closes at 2 s, the next opens at 10 s with the same device.

    The update of round 1 and that of round 2 are both merged when round 2 closes.
    """
    (tmp_path / "there.csv").write_text("device,start_s,end_s\n0,0,2\n0,10,50\n")
    (tmp_path / "phone.csv").write_text("device,s_per_sample,link_bps\n0,0.1,1e6\n")
    (tmp_path / "links.csv").write_text("device,t_s,bps\n0,0,1e6\n0,5,4e6\n")
    values = {
        "rounds": 2,
        "devices": {
            "count": 1,
            "profile": str(tmp_path / "phone.csv"),
            "links": {"file": str(tmp_path / "links.csv"), "after_end": "hold"},
        },
        "radio": {"sharing": "own"},
        "availability": {"model": "table", "file": str(tmp_path / "there.csv"), "interruption": "ignore"},
        "round": {"late": "keep", "tmax_s": 2.0, "payload_bits": 2e6, "admission": "count", "count": 1},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "steps": 1, "batch_size": 10, "pretrain": True},
    }
    simulation.run(parse(values, "test"), tmp_path / "run")
    rounds, updates = (read_table(tmp_path / "run", name) for name in ("rounds", "updates"))
    assert rounds["t_start_s"].tolist() == [0.0, 10.0]
    assert rounds["candidates"].tolist() == [1, 1]
    assert rounds[["selected", "arrived", "late"]].to_numpy().tolist() == [[1, 0, 1], [1, 1, 0]]
    columns = ["round", "device", "task", "staleness", "weight"]
    assert updates[columns].to_numpy().tolist() == [[2, 0, 1, 0, 0.5], [2, 0, 2, 0, 0.5]]


def test_latecomers_on_links_of_their_own_hold_no_band_from_others(tmp_path):
    """Six devices need 30 s, six 1.5 s, for a deadline of 2 s; one is taken in every round."""
    rates_bps = [1e5] * 6 + [6e6] * 6
    rows = [f"{device},0.1,{rate}" for device, rate in enumerate(rates_bps)]
    (tmp_path / "phones.csv").write_text("\n".join(["device,s_per_sample,link_bps", *rows]))
    values = {
        "rounds": 40,
        "devices": {"count": 12, "profile": str(tmp_path / "phones.csv")},
        "radio": {"sharing": "own"},
        "round": {"late": "keep", "tmax_s": 2.0, "payload_bits": 3e6, "admission": "count", "count": 1},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "steps": 1, "batch_size": 10, "pretrain": True},
    }
    simulation.run(parse(values, "test"), tmp_path / "run")
    rounds, acts = (read_table(tmp_path / "run", name) for name in ("rounds", "activities"))
    assert rounds["selected"].tolist() == [1] * 40
    assert rounds["late"].sum() > 0
    assert (rounds["bandwidth_hz"] == 0).all()
    assert (acts["bandwidth_hz"] == 0).all()


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


ONE = {"admission": "count", "count": 1}
SENDING_W = 0.2 / 0.35
SLOW_WIRE = """
name = "One cell, 2.5 s by wire from the cloud for an update of 1 Mbit"
source = "made up"
cloud = "cloud"
edge_servers = []
[[stations]]
name = "cell"
x_m = 0.0
y_m = 0.0
[[links]]
between = ["cell", "cloud"]
rate_bps = 4e5
latency_s = 0.0
"""


def busy_wire(folder: Path) -> RunConfig:
    """One device; rounds of 1 s, of which it computes 0.2 s and sends 0.5 s, and its update takes 2.5 s by wire.

    In the first round, in which it sends a tenth, the update arrives after 0.5 s.
    """
    (folder / "wire.toml").write_text(SLOW_WIRE)
    (folder / "phone.csv").write_text("device,s_per_sample,link_bps\n0,0.02,2e6\n")
    values = {
        "rounds": 8,
        "devices": {
            "count": 1,
            "profile": str(folder / "phone.csv"),
            "battery_j": 100.0,
            "battery_start": 0.5,
            "battery_reserve": 0.1,
            "recharge_w": 0.5,
            "tx_power_dbm": 23.0103,
        },
        "radio": {"sharing": "own"},
        "topology": {"file": str(folder / "wire.toml")},
        "algorithm": {"name": "unsent"},
        "round": {"late": "keep", "close": "deadline", "tmax_s": 1.0, "payload_bits": 1e6, **ONE},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "steps": 1, "batch_size": 10, "pretrain": True},
    }
    return parse(values, "test")


def test_a_device_works_again_while_its_updates_travel_by_wire(tmp_path, monkeypatch):
    """By hand: from round 2 on, the task of round r sends from r - 0.8 to r - 0.3 s and arrives at r + 2.2 s."""
    monkeypatch.setitem(ALGORITHMS, "unsent", Unsent)
    simulation.run(busy_wire(tmp_path), tmp_path / "run")
    rounds, acts, updates = (read_table(tmp_path / "run", name) for name in ("rounds", "activities", "updates"))
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
    charge = read_table(tmp_path / "run", "metrics").query("name == 'battery_j' and key == 'mean'")
    spent_j = acts.groupby("task")["energy_j"].sum().to_numpy()
    assert spent_j[1:] == pytest.approx(0.2 * 2.0 + 0.5 * SENDING_W)
    assert charge["value"].to_numpy() == pytest.approx(50 + 0.5 * np.arange(1, 9) - np.cumsum(spent_j))


def test_updates_on_the_wire_beside_other_work_of_their_device_are_resumed(tmp_path, monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "unsent", Unsent)
    assert_stops_change_nothing(busy_wire(tmp_path), tmp_path / "runs", (2, 3, 5))
