"""Batteries in the engine: who drops out, who may check in and when, and that every joule is accounted for."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.devices.battery import Batteries
from edgesim.engine.check_in import next_time_with
from edgesim.engine.make_world import make_world
from edgesim.folder.records import SCHEMAS, read_run, read_table
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals
from edgesim.traces.search import Search

_spec = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("test_golden_round.py"))
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)

PAPER_CNN_BITS = 17_881_664.0
UPLOAD_W = 10 ** ((23 - 30) / 10) / 0.35


def charges(folder: Path) -> list[float]:
    metrics = read_table(folder, "metrics")
    return metrics[metrics["name"] == "battery_j"]["value"].tolist()


def test_devices_whose_batteries_empty_drop_out_at_that_instant(tmp_path):
    # 1.2 J and no charger. Device 0 spends 0.4 J computing and uploads for 0.8 s; device 1 has 0.2 J left when its
    # upload begins at 0.5 s; device 2 would need 1.4 J to compute and is empty after 0.6 s.
    round_, activities = golden.play(tmp_path, [0, 1, 2], devices={"battery_j": 1.2})
    airtime_s = 0.2 / UPLOAD_W
    golden.same(
        golden.rows(activities),
        [
            (0, "compute", 0, 0.2, "done", 0, 0),
            (0, "upload", 0.2, 1.0, "done", 1e6, 130_418.720),
            (1, "compute", 0, 0.5, "done", 0, 0),
            (1, "upload", 0.5, 0.5 + airtime_s, "dropped", 1e6 * airtime_s / 0.5, 227_748.247),
            (2, "compute", 0, 0.6, "dropped", 0, 0),
        ],
    )
    assert round_["t_end_s"] == 1.0
    assert list(round_[["candidates", "selected", "arrived", "late", "dropped"]]) == [3, 2, 1, 0, 1]
    left_j = 0.8 - 0.8 * UPLOAD_W
    assert charges(tmp_path) == pytest.approx([0.0, left_j / 3], abs=1e-9)


@pytest.mark.parametrize(("at_least", "begins_s"), [(2, 1.0 + (0.6 - 0.7 + 0.5 * UPLOAD_W) / 0.5), (3, 1.6)])
def test_the_next_round_begins_when_enough_devices_have_their_reserve_again(tmp_path, at_least, begins_s):
    # 0.5 W of charging. At 1.0 s device 0 has 1.2 + 0.5 - 0.4 - 0.8 P, device 1 has 1.2 + 0.5 - 1.0 - 0.5 P and
    # device 2, unscheduled, 1.2 + 0.5 - 1.4 = 0.3 J; the reserve is 0.6 J.
    devices = {"battery_j": 1.2, "recharge_w": 0.5, "battery_reserve": 0.5}
    golden.play_rounds(tmp_path, 2, [0, 1, 2], devices=devices, min_candidates=at_least)
    rounds = read_table(tmp_path, "rounds")
    assert rounds["t_start_s"].tolist() == pytest.approx([0.0, begins_s], abs=1e-9)
    assert rounds["candidates"].tolist() == [3, at_least]


def test_a_device_below_its_reserve_is_no_candidate(tmp_path):
    # Of 2 J, 1.144 J, 0.715 J and, not scheduled, 0.6 J are left, and nothing charges them.
    for share, candidates in ((0.3, [3, 3]), (0.35, [3, 2]), (0.5, [3, 1]), (0.6, [3])):
        devices = {"battery_j": 2.0, "battery_reserve": share}
        golden.play_rounds(tmp_path / str(share), 2, [0, 1, 2], devices=devices)
        assert read_table(tmp_path / str(share), "rounds")["candidates"].tolist() == candidates


TABLES = st.lists(st.lists(st.integers(0, 40), max_size=6, unique=True), min_size=2, max_size=5)


@given(TABLES, st.sampled_from([0.0, 1.0, 3.0]), st.data())
def test_the_first_instant_with_enough_devices_there_and_charged_is_that_of_a_search_over_all_instants(
    tables, idle_w, data
):
    # A watt from the charger: resting devices gain 1 W, hold what they have, or lose 2 W.
    spans = [sorted(times)[: len(times) // 2 * 2] for times in tables]
    rows = [(n, *span[i : i + 2]) for n, span in enumerate(spans) for i in range(0, len(span), 2)]
    device, start_s, end_s = np.array(rows).reshape(-1, 3).T if rows else np.empty((3, 0))
    count = len(spans)
    columns = (device.astype(np.int64), start_s.astype(float), end_s.astype(float), np.full(count, np.inf), "made up")
    table = IntervalTable(Intervals(*columns), after_end="absent")
    missing_j = np.array(data.draw(st.lists(st.integers(-70, 30), min_size=count, max_size=count)), dtype=float)
    batteries = Batteries(100.0, 30.0, 1.0, 30.0 - missing_j, np.zeros(count), np.zeros(count), idle_w)
    wanted, t_s = data.draw(st.integers(1, count)), float(data.draw(st.integers(0, 40)))

    def enough(at_s: float) -> bool:
        there = [any(a <= at_s < b for n, a, b in rows if n == device) for device in range(count)]
        return sum(np.array(there) & (batteries.charge_at(np.arange(count), at_s) >= 30.0)) >= wanted

    instants = sorted({t_s} | {float(at) for span in spans for at in span} | set(missing_j))
    expected = next((at_s for at_s in instants if at_s >= t_s and enough(at_s)), np.inf)
    assert next_time_with(wanted, table, batteries, np.arange(count), t_s, Search()) == expected


def config(devices: dict, training: str = "none", rounds: int = 25, **sections: dict) -> RunConfig:
    values = {
        "seed": 5,
        "rounds": rounds,
        "devices": devices,
        "round": {"payload_bits": PAPER_CNN_BITS, "tmax_s": 0.8},
        "learning": {"training": training, "pretrain": True},
        "data": {"partition": "fedteddi"},
    }
    for name, section in sections.items():
        values[name] = {**values.get(name, {}), **section}
    return simulation.complete(parse(values, "test"))


SMALL = {"battery_j": 2.5, "battery_start": "drawn", "recharge_w": 0.35, "battery_reserve": 0.3}


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {
            "round": {"delay_knowledge": "planned", "late": "keep"},
            "radio": {"fading": "rayleigh", "sharing": "reshared"},
        },
        {
            "round": {"delay_knowledge": "reported", "download_s": 0.05, "min_candidates": 20},
            "availability": {"model": "bernoulli", "probability": 0.9, "slot_s": 0.3},
        },
    ],
)
def test_every_devices_charge_is_what_its_rows_and_the_charger_say(tmp_path, sections):
    settings = config(SMALL, rounds=12, **sections)
    simulation.run(settings, tmp_path)
    rounds, acts, metrics = (read_table(tmp_path, name) for name in ("rounds", "activities", "metrics"))
    assert (acts["outcome"] == "dropped").any()
    everyone = np.arange(30)
    start_j = SMALL["battery_j"] * Streams(5).uniform("battery", everyone)
    found = metrics[metrics["name"] == "battery_j"].pivot(index="round", columns="key", values="value")
    availability = make_world(settings, Streams(5)).availability
    of_devices = by_device(acts)
    for row in rounds.itertuples():
        charge_j = charges_at(row.t_end_s, of_devices, start_j)
        assert found.loc[row.round, "mean"] == pytest.approx(np.mean(charge_j), rel=1e-9)
        assert found.loc[row.round, "least"] == pytest.approx(min(charge_j), abs=1e-9)
        enough = charges_at(row.t_start_s, of_devices, start_j) >= 0.3 * SMALL["battery_j"] * (1 - 1e-12)
        sending = acts[(acts["t_start_s"] < row.t_start_s) & (acts["t_end_s"] > row.t_start_s)]["device"]
        there = enough & availability.available(everyone, row.t_start_s) & ~np.isin(everyone, sending)
        assert row.candidates == there.sum()


def by_device(acts: pd.DataFrame) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Starts, ends and powers of each device's rows of ``activities``, in order of time."""
    found = []
    for device in range(30):
        rows = acts[acts["device"] == device].sort_values("t_start_s")
        begin_s, end_s = rows["t_start_s"].to_numpy(), rows["t_end_s"].to_numpy()
        found.append((begin_s, end_s, rows["energy_j"].to_numpy() / (end_s - begin_s)))
    return found


def charges_at(t_s: float, of_devices: list[tuple[np.ndarray, np.ndarray, np.ndarray]], start_j: np.ndarray):
    """Charges of all devices at an instant, from `by_device` and the charges at t = 0."""
    return np.array([charge(*rows, start_j[n], t_s) for n, rows in enumerate(of_devices)])


def charge(begin_s: np.ndarray, end_s: np.ndarray, power_w: np.ndarray, start_j: float, t_s: float) -> float:
    """Charge of one device by the reflection formula: what it would be without a lid, less what ran over."""
    begun = begin_s < t_s
    begin_s, cut_s = begin_s[begun], np.minimum(end_s[begun], t_s)
    capacity_j, recharge_w = SMALL["battery_j"], SMALL["recharge_w"]
    spent_j = np.concatenate([[0.0], np.cumsum(power_w[begun] * (cut_s - begin_s))])
    begins = start_j + recharge_w * begin_s - spent_j[:-1]
    ends = start_j + recharge_w * cut_s - spent_j[1:]
    last = start_j + recharge_w * t_s - spent_j[-1]
    return last - max(0.0, max([start_j, last, *begins, *ends]) - capacity_j)


def test_a_battery_that_is_never_short_changes_no_event(tmp_path):
    simulation.run(config({}), tmp_path / "mains")
    simulation.run(config({"battery_j": 1e6}), tmp_path / "battery")
    for table in set(SCHEMAS) - {"timing", "metrics"}:
        file = f"{table}.parquet"
        assert (tmp_path / "mains" / file).read_bytes() == (tmp_path / "battery" / file).read_bytes(), table


def test_a_run_whose_devices_run_down_for_good_ends_and_says_why(tmp_path):
    simulation.run(config({"battery_j": 8.0}, rounds=200), tmp_path)
    facts, rounds = read_run(tmp_path), read_table(tmp_path, "rounds")
    assert facts["status"] == "finished"
    assert "fewer than 1 devices are ever available and charged again" in facts["reason"]
    assert 0 < len(rounds) < 200
    assert rounds["energy_j"].sum() <= 30 * 8.0


def test_learning_goes_on_with_those_that_are_charged(tmp_path):
    devices = {"battery_j": 3.0, "battery_start": "drawn", "recharge_w": 0.4}
    simulation.run(config(devices, training="real", rounds=30, selection={"policy": "fed-cbs"}), tmp_path)
    rounds = read_table(tmp_path, "rounds")
    assert rounds["candidates"].min() < 30
    assert rounds["test_accuracy"].iloc[-1] > 0.7


def test_a_search_for_devices_that_never_meet_gives_up_with_one_line(monkeypatch):
    class Alternating:
        """Device 0 is there in even seconds, device 1 in odd ones."""

        def available(self, ids, t_s):
            return self.next_available(ids, t_s) == t_s

        def next_available(self, ids, t_s):
            second = np.floor(t_s)
            return np.where(second % 2 == ids, t_s, second + 1)

    batteries = Batteries(1.0, 0.5, 1.0, np.ones(2), np.zeros(2), np.zeros(2))
    for limit, most in (("CHARGED_LIMIT", 50), ("DRAW_LIMIT", 49 * 10 + 10)):
        with monkeypatch.context() as patch:
            patch.setattr(f"edgesim.engine.check_in.{limit}", most)
            search = Search()
            assert next_time_with(2, Alternating(), batteries, np.arange(2), 0.0, search) == np.inf
        assert search.extent == (
            "up to 50 s of the 30 years of availability.search_s, since the search took too many steps; lower "
            "devices.battery_reserve or raise devices.recharge_w, or lower round.min_candidates"
        )
