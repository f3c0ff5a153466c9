from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edgesim.traces.availability as module
from edgesim.config import AvailabilityConfig
from edgesim.errors import EdgesimError
from edgesim.streams import Streams
from edgesim.traces import Always, Bernoulli, Intervals, IntervalTable, make_availability

Rows = list[tuple[int, float, float]]
DEVICES = 5


def table(rows: Rows, device_count: int = DEVICES) -> IntervalTable:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    device, start_s, end_s = (np.array(column) for column in columns)
    return IntervalTable(Intervals(device.astype(np.int64), start_s.astype(float), end_s.astype(float)), device_count)


@st.composite
def intervals(draw: st.DrawFn) -> Rows:
    rows: Rows = []
    for device in range(DEVICES):
        # Distinct instants in pairs: neither touching nor overlapping.
        edges = sorted(draw(st.lists(st.integers(0, 60), unique=True, max_size=12)))
        rows += [(device, float(s), float(e)) for s, e in zip(edges[::2], edges[1::2], strict=False)]
    return rows


def end_of_stretch(rows: Rows, device: int, t_s: float) -> float:
    return next((end for d, start, end in rows if d == device and start <= t_s < end), t_s)


instants = st.integers(0, 140).map(lambda half: half / 2)


@given(intervals(), st.lists(instants, min_size=1, max_size=15), st.permutations(range(DEVICES)))
def test_a_table_equals_its_intervals_under_any_order_of_questions(
    rows: Rows, times: list[float], ids: list[int]
) -> None:
    asked = table(rows)
    for t_s in times:
        ends = [end_of_stretch(rows, device, t_s) for device in ids]
        assert asked.available(np.array(ids), t_s).tolist() == [end > t_s for end in ends]
        assert asked.available_until(np.array(ids), t_s, 1000.0).tolist() == ends
        assert asked.available_until(np.array(ids[:2]), t_s, 1000.0).tolist() == ends[:2]


@given(intervals(), instants, st.integers(0, DEVICES + 1))
def test_a_table_finds_the_first_instant_with_enough_devices(rows: Rows, t_s: float, count: int) -> None:
    # Presence only rises where an interval starts, so the candidates are those instants and now.
    candidates = sorted({t_s} | {start for _, start, _ in rows if start > t_s})
    present = {t: sum(start <= t < end for _, start, end in rows) for t in candidates}
    expected = next((t for t in candidates if present[t] >= count), np.inf)
    assert table(rows).next_time_with(count, t_s) == expected


def test_intervals_hold_their_start_and_not_their_end() -> None:
    asked, device = table([(1, 2.0, 3.0)]), np.array([1])
    just_before = np.nextafter(3.0, 0.0)
    present = [bool(asked.available(device, t)[0]) for t in (np.nextafter(2.0, 0), 2.0, just_before, 3.0)]
    assert present == [False, True, True, False]


def test_a_device_without_intervals_is_never_available() -> None:
    asked = table([(1, 0.0, 9.0)])
    assert asked.available(np.arange(DEVICES), 5.0).tolist() == [False, True, False, False, False]
    assert asked.available_until(np.array([4]), 5.0, 8.0).tolist() == [5.0]
    assert asked.next_time_with(2, 0.0) == np.inf


def test_a_table_of_nobody_is_never_available() -> None:
    asked = table([])
    assert not asked.available(np.arange(DEVICES), 0.0).any()
    assert asked.next_time_with(1, 0.0) == np.inf


def test_a_stretch_that_lasts_to_the_horizon_has_no_end_before_it() -> None:
    asked, device = table([(0, 1.0, 4.0)]), np.array([0])
    assert asked.available_until(device, 2.0, 4.5).tolist() == [4.0]
    assert asked.available_until(device, 2.0, 4.0).tolist() == [np.inf]
    assert asked.available_until(device, 2.0, 3.0).tolist() == [np.inf]
    # Not available at all, whatever the horizon.
    assert asked.available_until(device, 4.0, 4.5).tolist() == [4.0]


def test_everyone_is_always_available() -> None:
    always, ids = Always(3), np.arange(3)
    assert always.available(ids, 7.0).tolist() == [True] * 3
    assert always.available_until(ids, 7.0, 1e9).tolist() == [np.inf] * 3
    assert always.next_time_with(3, 7.0) == 7.0
    assert always.next_time_with(4, 7.0) == np.inf


SLOT_S = 0.7


def bernoulli(probability: float = 0.6, devices: int = 20, slot_s: float = SLOT_S) -> Bernoulli:
    return Bernoulli(devices, probability, slot_s, Streams(11))


def test_the_share_of_available_devices_is_the_probability_and_slots_are_independent() -> None:
    model, ids = bernoulli(0.3, 10_000), np.arange(10_000)
    one, other = model.available(ids, 0.0), model.available(ids, SLOT_S)
    for present in (one, other):
        assert present.mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.3 * 0.7 / len(ids)))
    assert np.mean(one & other) == pytest.approx(0.09, abs=4 * np.sqrt(0.09 * 0.91 / len(ids)))


def test_availability_changes_only_at_the_edges_of_slots() -> None:
    model, ids = bernoulli(), np.arange(20)
    inside = [model.available(ids, (3 + share) * SLOT_S).tolist() for share in (0.0, 0.25, 0.99999)]
    assert inside[0] == inside[1] == inside[2]
    assert model.available(ids, 4.0 * SLOT_S).tolist() != inside[0]


@pytest.mark.parametrize("slot_s", [0.1, 0.7, 0.8, 1.2])
def test_a_clock_that_adds_up_slots_sees_each_slot_once(slot_s: float) -> None:
    model, ids = bernoulli(slot_s=slot_s), np.arange(20)
    t_s = 0.0
    for slot in range(500):
        assert model.available(ids, t_s).tolist() == model.available(ids, (slot + 0.5) * slot_s).tolist(), slot
        t_s += slot_s


def test_a_bernoulli_stretch_ends_with_the_first_slot_missed() -> None:
    model, ids, horizon_s = bernoulli(0.6, 200), np.arange(200), 5.0
    until_s = model.available_until(ids, 1.0, horizon_s)
    slots = np.array([model.available(ids, (slot + 0.5) * SLOT_S) for slot in range(1, 40)])
    for device in ids:
        missed = int(np.argmin(slots[:, device])) + 1
        expected = 1.0 if missed == 1 else missed * SLOT_S
        assert until_s[device] == (expected if expected < horizon_s else np.inf)
    assert {1.0, np.inf} < set(until_s.tolist())


def test_a_stretch_that_ends_with_the_round_is_not_cut_short_by_rounding_of_the_clock() -> None:
    # The clock after adding up slots lies some last bits off the slot's edge, on either side.
    model, ids = bernoulli(0.5, 50), np.arange(50)
    for edge in (30, 31, 77):
        here, gone = model.available(ids, edge * SLOT_S), ~model.available(ids, (edge + 1) * SLOT_S)
        assert (here & gone).any()
        for off_s in (-1e-12, 0.0, 1e-12):
            until_s = model.available_until(ids, edge * SLOT_S + off_s, (edge + 1) * SLOT_S + off_s)
            assert np.all(until_s[here] == np.inf)


def test_the_next_time_with_enough_devices_is_now_or_the_start_of_a_slot() -> None:
    model, ids = bernoulli(0.5, 20), np.arange(20)
    t_s = 1.0
    counts = {slot: int(model.available(ids, slot * SLOT_S).sum()) for slot in range(1, 2000)}
    for count in range(16):
        first = next(slot for slot in counts if counts[slot] >= count)
        assert model.next_time_with(count, t_s) == (t_s if first == 1 else first * SLOT_S)
        assert model.available(ids, model.next_time_with(count, t_s)).sum() >= count


def test_more_devices_than_there_are_never_come() -> None:
    assert bernoulli().next_time_with(21, 0.0) == np.inf


def test_a_wait_beyond_all_reason_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOT_LIMIT", 50)
    with pytest.raises(EdgesimError, match=r"in 50 slots .* never 20 of 20 devices .* raise availability\.probability"):
        bernoulli(0.01).next_time_with(20, 0.0)


def test_the_config_chooses_the_model(tmp_path: Path) -> None:
    path = tmp_path / "week.csv"
    path.write_text("device,start_s,end_s\n1,2,3\n")
    streams, ids = Streams(0), np.arange(2)
    assert make_availability(AvailabilityConfig(), 2, streams) == Always(2)
    slots = AvailabilityConfig(model="bernoulli", probability=0.25, slot_s=2.0)
    assert make_availability(slots, 2, streams) == Bernoulli(2, 0.25, 2.0, streams)
    recorded = make_availability(AvailabilityConfig(model="table", file=str(path)), 2, streams)
    assert recorded.available(ids, 2.5).tolist() == [False, True]


def test_a_missing_table_or_slot_length_is_refused() -> None:
    with pytest.raises(EdgesimError, match="traces: no file 'nowhere'"):
        make_availability(AvailabilityConfig(model="table", file="nowhere"), 2, Streams(0))
    with pytest.raises(EdgesimError, match=r"availability\.slot_s: expected"):
        make_availability(AvailabilityConfig(model="bernoulli"), 2, Streams(0))
