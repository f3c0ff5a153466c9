"""Bits that differ between devices and directions, by algorithms of the tests' own."""

import numpy as np
import pandas as pd
import pytest
from whole_runs import TIMED, merged
from whole_runs import phones as own_phones
from whole_runs import play as simulate

from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.fedavg import FedAvg

BITS = 1e6
#: Paths to the cloud of three-cells, as latency and rate of each link by its key.
WIRES = {
    "north-west": {"north-west-edge-west": (0.001, 1e9), "edge-west-cloud": (0.02, 200e6)},
    "south-west": {"south-west-edge-west": (0.001, 1e9), "edge-west-cloud": (0.02, 200e6)},
    "east": {"east-edge-east": (0.001, 1e9), "edge-east-cloud": (0.02, 200e6)},
}


class Uneven(FedAvg.Local):
    """Devices of odd ids send twice as much as the others, and three times as much from round 3 on."""

    def upload_bits(self, devices, round, ledger):
        times = np.where(devices.ids % 2 == 1, 2.0 if round < 3 else 3.0, 1.0)
        return super().upload_bits(devices, round, ledger) * times


class Sparing(FedAvg.Server):
    """Devices of odd ids are sent nothing, the others twice a model."""

    def download_bits(self, devices, round, ledger):
        return super().download_bits(devices, round, ledger) * np.where(devices.ids % 2 == 1, 0.0, 2.0)


class Silent(FedAvg.Local):
    """Devices of odd ids send nothing."""

    def upload_bits(self, devices, round, ledger):
        return super().upload_bits(devices, round, ledger) * (devices.ids % 2 == 0)


class Lighter(FedAvg.Local):
    """In the first round alone, updates are a million times as large."""

    def upload_bits(self, devices, round, ledger):
        return super().upload_bits(devices, round, ledger) * (1e6 if round == 1 else 1.0)


@pytest.fixture(autouse=True)
def _own_algorithms(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "uneven", type("Uneven", (FedAvg,), {"Local": Uneven}))
    monkeypatch.setitem(ALGORITHMS, "sparing", type("Sparing", (FedAvg,), {"Server": Sparing}))
    monkeypatch.setitem(ALGORITHMS, "silent", type("Silent", (FedAvg,), {"Local": Silent}))
    monkeypatch.setitem(ALGORITHMS, "lighter", type("Lighter", (FedAvg,), {"Local": Lighter}))


@pytest.fixture
def play(tmp_path):
    """Runs without training of an algorithm that sends so many bits."""

    def play(name, bits=BITS, **sections):
        base = {"rounds": 4, "devices": {"count": 6}, "radio": {"bandwidth_hz": 40e6}, "algorithm": {"name": name}}
        closing = {} if "protocol" in sections.get("round", {}) else {"close": "deadline"}
        base["round"] = {"payload_bits": bits, "tmax_s": 1.0} | closing
        return simulate(tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}", merged(TIMED, base, sections))

    return play


def uploads(played):
    return played.uploads.sort_values(["round", "device"]).reset_index(drop=True)


def of(rows, device=None, rounds=(1, 4)):
    """Rows of devices of one parity in some rounds, numbered anew."""
    chosen = rows[(rows["device"] % 2 == device) & rows["round"].between(*rounds)]
    return chosen.reset_index(drop=True)


COUNT = {"admission": "count", "count": 6}


def phones(folder):
    """Sections of devices with links of their own."""
    return own_phones(folder, *((0.0001 * (k + 1), 4e6 + 1e6 * k) for k in range(6)))


@pytest.mark.parametrize("way", ["least", "equal share", "own links"])
def test_an_upload_is_that_of_a_run_in_which_all_send_as_much(way, play, tmp_path):
    """Bandwidth, instants, bits and joules of each, row by row; every band is wide enough for all."""
    equal = {"round": {**COUNT, "allocator": "equal_share"}}
    sections = {"least": {}, "equal share": equal, "own links": phones(tmp_path)}[way]
    uneven = uploads(play("uneven", **sections))
    once, twice, thrice = (uploads(play("fedavg", times * BITS, **sections)) for times in (1, 2, 3))
    assert len(uneven) == 24
    assert (uneven["outcome"] == "done").all()
    pd.testing.assert_frame_equal(of(uneven, 0), of(once, 0), check_exact=True)
    pd.testing.assert_frame_equal(of(uneven, 1, (1, 2)), of(twice, 1, (1, 2)), check_exact=True)
    pd.testing.assert_frame_equal(of(uneven, 1, (3, 4)), of(thrice, 1, (3, 4)), check_exact=True)
    assert of(uneven, 1, (1, 2))["bits"].to_numpy() == pytest.approx(2 * BITS)
    assert of(uneven, 1, (3, 4))["bits"].to_numpy() == pytest.approx(3 * BITS)


def test_the_least_band_admits_fewer_devices_that_send_more(play):
    """Of need alone: with a band that all of one size fill, those of twice the size do not fit any more."""
    band = {"bandwidth_hz": uploads(play("fedavg"))["bandwidth_hz"].groupby(np.repeat(range(4), 6)).sum().max()}
    assert play("fedavg", radio=band).rounds["selected"].tolist() == [6] * 4
    uneven = play("uneven", radio=band)
    assert (uneven.rounds["selected"] < 6).all()
    assert (uploads(uneven).groupby("round")["bandwidth_hz"].sum() <= band["bandwidth_hz"] * (1 + 1e-9)).all()


def path_s(station, bits):
    return sum(latency_s + bits / rate_bps for latency_s, rate_bps in WIRES[station].values())


def stations(played):
    """Name of each device's station."""
    names = {0: "north-west", 1: "south-west", 2: "east"}
    return played.devices.drop_duplicates("device").set_index("device")["station"].map(names)


def test_the_wires_carry_what_each_device_sends(play):
    played = play("uneven", topology={"file": "three-cells"}, round={"close": "arrivals"}, devices={"count": 12})
    where, sent = stations(played), {}
    for row in played.updates.itertuples():
        bits = BITS * ((2 if row.round < 3 else 3) if row.device % 2 else 1)
        for link in WIRES[where[row.device]]:
            sent[row.round, link] = sent.get((row.round, link), 0.0) + bits
    found = played.metrics.query("name == 'backhaul_bits'")
    assert len(found) > 8
    assert dict(zip(zip(found["round"], found["key"], strict=True), found["value"], strict=True)) == sent
    # Uploads end early enough for the largest of them to be there at the deadline; the round ends at the last arrival.
    starts_s = played.rounds.set_index("round")["t_start_s"]
    ends_s = played.rounds.set_index("round")["t_end_s"]
    there_s = {}
    for row in uploads(played).itertuples():
        most = BITS * (2 if row.round < 3 else 3)
        assert row.t_end_s == pytest.approx(starts_s[row.round] + 1.0 - path_s(where[row.device], most))
        there_s.setdefault(row.round, []).append(row.t_end_s + path_s(where[row.device], row.bits))
    assert ends_s.to_dict() == pytest.approx({number: max(all_s) for number, all_s in there_s.items()})


def test_without_rounds_each_update_takes_its_own_time_on_the_wires(play):
    knobs = {"protocol": "asynchronous", "admission": "count", "count": 3, "close": "arrivals"}
    played = play("uneven", topology={"file": "three-cells"}, round=knobs, devices={"count": 12})
    where = stations(played)
    rows = uploads(played)
    rows = rows[rows["outcome"] == "done"].set_index(["device", "task"])
    assert set(played.updates["device"] % 2) == {0, 1}
    ends_s = played.rounds.set_index("round")["t_end_s"]
    for row in played.updates.itertuples():
        sent = rows.loc[(row.device, row.task)]
        assert ends_s[row.round] == pytest.approx(sent["t_end_s"] + path_s(where[row.device], sent["bits"]))


@pytest.mark.parametrize("protocol", ["synchronous", "asynchronous"])
@pytest.mark.parametrize("download_s", [0.0, 0.05])
def test_a_device_that_is_sent_nothing_waits_for_no_broadcast_and_receives_nothing(protocol, download_s, play):
    knobs = {"download_s": download_s}
    if protocol != "synchronous":
        knobs |= {"protocol": protocol, "admission": "count", "count": 12, "close": "arrivals"}
    played = play("sparing", topology={"file": "three-cells"}, round=knobs, devices={"count": 12})
    acts, where = played.activities, stations(played)
    began_s = acts[acts["activity"] == "compute"].set_index(["device", "task"])["t_start_s"]
    loads = acts[(acts["activity"] == "download") & (acts["outcome"] == "done")]
    assert len(loads) > 0 or download_s == 0
    assert (loads["device"] % 2 == 0).all()
    assert loads["bits"].to_numpy() == pytest.approx(2 * BITS)
    if protocol == "synchronous":
        starts_s = played.rounds.set_index("round")["t_start_s"]
        for (device, task), t_s in began_s.items():
            waits_s = 0.0 if device % 2 else path_s(where[device], 2 * BITS) + 2 * download_s
            assert t_s == pytest.approx(starts_s[task] + waits_s)
        # What is planned has no wait either: least bandwidths still end when they must.
        rows = uploads(played)
        due_s = rows["round"].map(starts_s) + 1.0 - rows["device"].map(lambda device: path_s(where[device], BITS))
        assert rows["t_end_s"].to_numpy() == pytest.approx(due_s.to_numpy())
        begun = acts.drop_duplicates(["device", "task"]).groupby("task")["device"]
        even = begun.agg(lambda devices: (devices % 2 == 0).sum())
        assert played.rounds["bits_down"].tolist() == pytest.approx((2 * BITS * even).tolist())
    else:
        for (device, task), t_s in began_s.items():
            if task == 1:
                waits_s = 0.0 if device % 2 else path_s(where[device], 2 * BITS) + 2 * download_s
                assert t_s == pytest.approx(waits_s)


def test_a_download_over_an_own_link_takes_as_long_as_its_bits(play, tmp_path):
    played = play("sparing", **phones(tmp_path), round={"download_s": "link", "tmax_s": 3.0})
    loads = played.activities.query("activity == 'download'")
    assert sorted(set(loads["device"])) == [0, 2, 4]
    took_s = loads["t_end_s"] - loads["t_start_s"]
    assert took_s.to_numpy() == pytest.approx((2 * BITS / (4e6 + 1e6 * loads["device"])).to_numpy())


SILENT = {
    "least": {},
    "equal finish": {"leftover": "equal_finish"},
    "equal share": COUNT | {"allocator": "equal_share"},
    "proportional": COUNT | {"allocator": "proportional"},
    "buffered": {"protocol": "buffered", "admission": "count", "count": 3, "protocol_options": {"buffer": 3}},
    "late": COUNT | {"close": "arrivals", "count": 3, "late": "keep"},
}


@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
@pytest.mark.parametrize("way", SILENT)
def test_devices_with_nothing_to_send_arrive_once_they_have_computed(play, way, sharing):
    found = play("silent", round=SILENT[way], radio={"bandwidth_hz": 40e6, "sharing": sharing})
    sent = uploads(found)
    assert len(sent) > 0
    assert (sent["device"] % 2 == 0).all()
    quiet = found.updates[(found.updates["device"] % 2 == 1)]
    assert len(quiet) > 0
    computed = found.activities.query("activity == 'compute' and outcome == 'done' and device % 2 == 1")
    assert len(computed) >= len(quiet)
    if way not in ("buffered", "late"):
        assert (found.rounds["arrived"] == 6).all()


def test_a_first_round_that_no_device_can_meet_refuses_no_run_whose_later_rounds_some_can(play):
    assert play("lighter").rounds["arrived"].tolist() == [0, 6, 6, 6]
