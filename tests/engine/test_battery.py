"""Batteries in the engine: who drops out, who may check in and when. `test_rows_add_up` replays every charge."""

import numpy as np
import pytest
from golden import UPLOAD_W, assert_rows, play
from hypothesis import given
from hypothesis import strategies as st

from edgesim.devices.battery import Batteries
from edgesim.engine.check_in import next_time_with
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals
from edgesim.traces.search import Search


def test_devices_whose_batteries_empty_drop_out_at_that_instant(tmp_path):
    # 1.2 J and no charger. Device 0 spends 0.4 J computing and uploads for 0.8 s; device 1 has 0.2 J left when its
    # upload begins at 0.5 s; device 2 would need 1.4 J to compute and is empty after 0.6 s.
    played = play(tmp_path, [0, 1, 2], sections={"devices": {"battery_j": 1.2}})
    airtime_s = 0.2 / UPLOAD_W
    assert_rows(
        played.activities,
        [
            (0, "compute", 0, 0.2, "done", 0, 0),
            (0, "upload", 0.2, 1.0, "done", 1e6, 130_418.720),
            (1, "compute", 0, 0.5, "done", 0, 0),
            (1, "upload", 0.5, 0.5 + airtime_s, "dropped", 1e6 * airtime_s / 0.5, 227_748.247),
            (2, "compute", 0, 0.6, "dropped", 0, 0),
        ],
    )
    assert played.rounds["t_end_s"].tolist() == [1.0]
    counts = ["candidates", "selected", "arrived", "late", "dropped"]
    assert played.rounds[counts].to_numpy().tolist() == [[3, 2, 1, 0, 1]]
    assert played.metric("battery_j").tolist() == pytest.approx([0.0, (0.8 - 0.8 * UPLOAD_W) / 3], abs=1e-9)


@pytest.mark.parametrize(("at_least", "begins_s"), [(2, 1.0 + (0.6 - 0.7 + 0.5 * UPLOAD_W) / 0.5), (3, 1.6)])
def test_the_next_round_begins_when_enough_devices_have_their_reserve_again(tmp_path, at_least, begins_s):
    # 0.5 W of charging. At 1.0 s device 0 has 1.2 + 0.5 - 0.4 - 0.8 P, device 1 has 1.2 + 0.5 - 1.0 - 0.5 P and
    # device 2, unscheduled, 1.2 + 0.5 - 1.4 = 0.3 J; the reserve is 0.6 J.
    devices = {"battery_j": 1.2, "recharge_w": 0.5, "battery_reserve": 0.5}
    rounds = play(tmp_path, [0, 1, 2], rounds=2, sections={"devices": devices}, min_candidates=at_least).rounds
    assert rounds["t_start_s"].tolist() == pytest.approx([0.0, begins_s], abs=1e-9)
    assert rounds["candidates"].tolist() == [3, at_least]


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


def test_a_search_for_devices_that_never_meet_gives_up_with_one_line(monkeypatch):
    class Alternating:
        """Device 0 is there in even seconds, device 1 in odd ones."""

        def available(self, ids, t_s):
            return self.next_available(ids, t_s) == t_s

        def next_available(self, ids, t_s):
            second = np.floor(t_s)
            return np.where(second % 2 == ids, t_s, second + 1)

    batteries = Batteries(1.0, 0.5, 1.0, np.ones(2), np.zeros(2), np.zeros(2))

    def next_s(count, *limits):
        return next_time_with(count, Alternating(), batteries, np.arange(2), 0.0, Search(*limits))

    assert next_s(1, 30.0) == 0.0
    assert next_s(2, 30.0) == np.inf
    # Behind the run's end any instant will do.
    assert 30.0 < next_s(2, 1e3, 30.0) < 32.0
    for limit, most in (("CHARGED_LIMIT", 50), ("DRAW_LIMIT", 49 * 10 + 10)):
        with monkeypatch.context() as patch:
            patch.setattr(f"edgesim.engine.check_in.{limit}", most)
            search = Search()
            assert next_time_with(2, Alternating(), batteries, np.arange(2), 0.0, search) == np.inf
        assert search.extent == (
            "up to 50 s of the 30 years of availability.search_s, since the search took too many steps; lower "
            "devices.battery_reserve or raise devices.recharge_w, or lower round.min_candidates"
        )
