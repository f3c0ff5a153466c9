"""An interval table answers as its intervals say: under any order of questions, repeated, and beyond its end."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgesim.base.errors import EdgesimError
from edgesim.traces import stays
from edgesim.traces.interval_file import read_intervals
from edgesim.traces.interval_table import AfterEnd, IntervalTable
from edgesim.traces.intervals import Intervals

Rows = list[tuple[int, float, float]]
DEVICES = 5
WEEK_S = 604_800.0


@pytest.fixture(scope="module", params=["as it is", "in pieces of 2"])
def pieces(request: pytest.FixtureRequest) -> Iterator[None]:
    """The constants as they are, and so low that a few rows take the path of a large replay."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "as it is":
            patch.setattr(stays, "_AT_ONCE", 2)
            patch.setattr(stays, "_ROWS_OF_DEVICE", 0)
            patch.setattr(stays, "_LEAST_ROWS", 2)
        yield


in_pieces = pytest.mark.usefixtures("pieces")


def table(
    rows: Rows, after_end: AfterEnd = "absent", lengths_s: list[float] | None = None, device_count: int = DEVICES
) -> IntervalTable:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    device, start_s, end_s = (np.array(column) for column in columns)
    lengths = np.array(lengths_s or [70.0] * device_count)
    return IntervalTable(
        Intervals(device.astype(np.int64), start_s.astype(float), end_s.astype(float), lengths), after_end
    )


@st.composite
def intervals(draw: st.DrawFn, last: int = 60) -> Rows:
    rows: Rows = []
    for device in range(DEVICES):
        # Distinct instants in pairs: neither touching nor overlapping.
        edges = sorted(draw(st.lists(st.integers(0, last), unique=True, max_size=12)))
        rows += [(device, float(s), float(e)) for s, e in zip(edges[::2], edges[1::2], strict=False)]
    return rows


def repeated(rows: Rows, lengths_s: list[float], until_s: float) -> Rows:
    """The rows laid end to end by hand, with periods that touch over a seam joined."""
    found: Rows = []
    for device in range(DEVICES):
        mine: list[list[float]] = []
        for lap in range(int(until_s // lengths_s[device]) + 2):
            for d, start, end in rows:
                if d == device:
                    begin = lap * lengths_s[device] + start
                    if mine and mine[-1][1] == begin:
                        mine[-1][1] += end - start
                    else:
                        mine.append([begin, begin + end - start])
        found += [(device, start, end) for start, end in mine]
    return found


def end_of_stretch(rows: Rows, device: int, t_s: float) -> float:
    return next((end for d, start, end in rows if d == device and start <= t_s < end), t_s)


def next_start(rows: Rows, device: int, t_s: float) -> float:
    if end_of_stretch(rows, device, t_s) > t_s:
        return t_s
    return min((start for d, start, _ in rows if d == device and start > t_s), default=np.inf)


def first_with(rows: Rows, count: int, t_s: float) -> float:
    # Availability only rises where an interval starts, so the candidates are those instants and now.
    candidates = sorted({t_s} | {start for _, start, _ in rows if start > t_s})
    return next((t for t in candidates if sum(s <= t < e for _, s, e in rows) >= count), np.inf)


instants = st.integers(0, 140).map(lambda half: half / 2)
orders = st.permutations(range(DEVICES))


@in_pieces
@given(intervals(), st.lists(instants, min_size=1, max_size=15), orders)
def test_a_table_equals_its_intervals_under_any_order_of_questions(
    rows: Rows, times: list[float], ids: list[int]
) -> None:
    asked, some = table(rows), np.array(ids)
    for t_s in times:
        ends = [end_of_stretch(rows, device, t_s) for device in ids]
        starts = [next_start(rows, device, t_s) for device in ids]
        for _ in range(2):
            assert asked.available(some, t_s).tolist() == [end > t_s for end in ends]
            assert asked.available_until(some, t_s, 1000.0).tolist() == ends
            assert asked.available_until(some[:2], t_s, 1000.0).tolist() == ends[:2]
            assert asked.next_available(some, t_s).tolist() == starts


@in_pieces
@given(intervals(), st.lists(instants, min_size=DEVICES, max_size=DEVICES), orders)
def test_devices_may_be_asked_each_at_an_instant_of_its_own(rows: Rows, times: list[float], ids: list[int]) -> None:
    asked, some, when_s = table(rows), np.array(ids), np.array(times)
    ends = [end_of_stretch(rows, device, t) for device, t in zip(ids, times, strict=True)]
    assert asked.available(some, when_s).tolist() == [end > t for end, t in zip(ends, times, strict=True)]
    assert asked.available_until(some, when_s, 1000.0).tolist() == ends
    starts = [next_start(rows, device, t) for device, t in zip(ids, times, strict=True)]
    assert asked.next_available(some, when_s).tolist() == starts


@in_pieces
@given(intervals(), instants, st.integers(0, DEVICES + 1))
def test_a_table_finds_the_first_instant_with_enough_devices(rows: Rows, t_s: float, count: int) -> None:
    assert table(rows).next_time_with(count, t_s) == first_with(rows, count, t_s)


@in_pieces
@given(intervals(), st.lists(instants, min_size=1, max_size=8))
def test_a_table_finds_the_next_instant_at_which_anybody_comes_or_leaves(rows: Rows, times: list[float]) -> None:
    asked, wrapped = table(rows), table(rows, "wrap")
    edges = {edge for _, start, end in rows for edge in (start, end)}
    for t_s in times:
        assert asked.next_change(t_s) == min((edge for edge in edges if edge > t_s), default=np.inf)
        # Repeated every 70 s; the seam counts too.
        lap = t_s // 70
        assert wrapped.next_change(t_s) == min(70 * lap + edge for edge in edges | {70.0} if 70 * lap + edge > t_s)


@in_pieces
@given(intervals(), st.sampled_from(["absent", "raise", "wrap"]))
def test_a_table_knows_the_most_devices_that_are_ever_there_at_once(rows: Rows, after_end: AfterEnd) -> None:
    asked = table(rows, after_end)
    most = max((sum(s <= t < e for _, s, e in rows) for _, t, _ in rows), default=0)
    assert asked.most_at_once() == most
    assert [asked.ever_has(count) for count in range(1, DEVICES + 2)] == [
        count <= most for count in range(1, DEVICES + 2)
    ]


def test_repeated_recordings_of_different_length_may_have_everybody_at_once_but_those_never_there() -> None:
    asked = table([(0, 0.0, 1.0), (1, 5.0, 6.0)], "wrap", [20.0, 30.0, 40.0], 3)
    assert asked.ever_has(2)
    assert not asked.ever_has(3)


lengths = st.one_of(
    st.integers(20, 40).map(lambda length: [float(length)] * DEVICES),
    st.lists(st.integers(20, 40).map(float), min_size=DEVICES, max_size=DEVICES),
)


@in_pieces
@settings(max_examples=40)
@given(intervals(last=20), lengths, st.lists(instants, min_size=1, max_size=10), st.integers(1, DEVICES))
def test_a_wrapped_table_is_its_intervals_laid_end_to_end(
    rows: Rows, lengths_s: list[float], times: list[float], count: int
) -> None:
    asked, ids = table(rows, "wrap", lengths_s), np.arange(DEVICES)
    by_hand = repeated(rows, lengths_s, 1100.0)
    for t_s in times:
        ends = [end_of_stretch(by_hand, device, t_s) for device in ids]
        assert asked.available(ids, t_s).tolist() == [end > t_s for end in ends]
        assert asked.available_until(ids, t_s, 1000.0).tolist() == [end if end < 1000 else np.inf for end in ends]
        assert asked.next_available(ids, t_s).tolist() == [next_start(by_hand, device, t_s) for device in ids]
        expected = first_with(by_hand, count, t_s)
        if np.isfinite(expected):
            assert asked.next_time_with(count, t_s) == expected


@in_pieces
@given(
    intervals(last=20),
    st.floats(20.0, 1e6),
    st.floats(0, 1e9),
    st.floats(1e-3, 1e3),
)
def test_answers_agree_with_each_other_to_the_last_bit_where_the_clock_rounds(
    rows: Rows, length_s: float, t_s: float, scale: float
) -> None:
    # Lengths and edges with full mantissas: phases and instants cannot all be represented.
    assume(rows)
    rows = [(device, start * scale / 7, end * scale / 7) for device, start, end in rows]
    length_s = max(length_s, max(end for _, _, end in rows))
    asked, ids = table(rows, "wrap", [length_s] * DEVICES), np.arange(DEVICES)
    present = asked.available(ids, t_s)
    next_s = asked.next_available(ids, t_s)
    coming = np.isfinite(next_s)
    assert np.array_equal(next_s[present], np.full(present.sum(), t_s))
    assert np.all(next_s >= t_s)
    assert asked.available(ids[coming], next_s[coming]).all()
    until_s = asked.available_until(ids, t_s, np.inf)
    assert np.array_equal(until_s > t_s, present)
    leaving = np.isfinite(until_s)
    assert not asked.available(ids[leaving], until_s[leaving]).any()
    soon_s = asked.next_time_with(1, t_s)
    assert asked.available(ids, soon_s).any()


def test_who_is_there_all_the_time_never_leaves_a_wrapped_table() -> None:
    asked, ids = table([(0, 0.0, 50.0), (1, 0.0, 49.0)], "wrap", [50.0] * DEVICES), np.array([0, 1])
    assert asked.available_until(ids, 120.0, np.inf).tolist() == [np.inf, 149.0]


def test_intervals_hold_their_start_and_not_their_end() -> None:
    asked, device = table([(1, 2.0, 3.0)]), np.array([1])
    just_before = np.nextafter(3.0, 0.0)
    present = [bool(asked.available(device, t)[0]) for t in (np.nextafter(2.0, 0), 2.0, just_before, 3.0)]
    assert present == [False, True, True, False]


def test_a_device_without_intervals_is_never_available() -> None:
    asked = table([(1, 0.0, 9.0)])
    assert asked.available(np.arange(DEVICES), 5.0).tolist() == [False, True, False, False, False]
    assert asked.available_until(np.array([4]), 5.0, 8.0).tolist() == [5.0]
    assert asked.next_available(np.array([4]), 5.0).tolist() == [np.inf]
    assert asked.next_time_with(2, 0.0) == np.inf
    wrapped = table([(1, 0.0, 9.0)], "wrap")
    assert wrapped.next_available(np.array([4, 1]), 75.0).tolist() == [np.inf, 75.0]


def test_a_table_of_nobody_is_never_available() -> None:
    for asked in (table([]), table([], "wrap"), table([], "wrap", [1.0, 2.0, 3.0, 4.0, 5.0])):
        assert not asked.available(np.arange(DEVICES), 0.0).any()
        assert asked.next_time_with(1, 0.0) == np.inf


def test_a_stretch_that_lasts_to_the_horizon_has_no_end_before_it() -> None:
    asked, device = table([(0, 1.0, 4.0)]), np.array([0])
    assert asked.available_until(device, 2.0, 4.5).tolist() == [4.0]
    assert asked.available_until(device, 2.0, 4.0).tolist() == [np.inf]
    assert asked.available_until(device, 2.0, 3.0).tolist() == [np.inf]
    # Not available at all, whatever the horizon.
    assert asked.available_until(device, 4.0, 4.5).tolist() == [4.0]


def test_beyond_its_end_a_table_that_is_not_repeated_has_nobody() -> None:
    for after_end in ("raise", "absent"):
        asked, ids = table([(0, 0.0, 5.0), (1, 60.0, 70.0)], after_end), np.arange(DEVICES)
        assert asked.available(ids, 69.9).tolist() == [False, True, False, False, False]
        assert not asked.available(ids, 70.0).any()
        assert asked.available_until(ids[:2], 65.0, 80.0).tolist() == [65.0, 70.0]
        assert asked.available_until(ids[:2], 65.0, 70.0).tolist() == [65.0, np.inf]
        assert asked.next_available(ids[:2], 0.0).tolist() == [0.0, 60.0]
        assert asked.next_available(ids[:1], 65.0).tolist() == [np.inf]
        assert asked.next_time_with(2, 65.0) == np.inf
        # More devices than there are never come, whatever follows.
        assert asked.next_time_with(DEVICES + 1, 0.0) == np.inf


def test_a_run_of_known_end_is_refused_at_once_by_a_shorter_trace() -> None:
    asked = table([(0, 0.0, 5.0)], "raise")
    with pytest.raises(EdgesimError, match=r"ends at 70 s, but 70\.5 s \(stop_at_s\)"):
        asked.for_run_until(70.5)
    # Without a known end it is the clock that stops there; looks ahead find nobody.
    assert asked.for_run_until(None).known_until_s == 70.0
    covered = asked.for_run_until(70.0)
    assert covered.known_until_s == np.inf
    assert covered.available_until(np.array([0]), 2.0, 90.0).tolist() == [5.0]
    assert covered.next_time_with(1, 71.0) == np.inf
    wrapped = table([(0, 0.0, 5.0)], "wrap")
    assert wrapped.for_run_until(1e9) is wrapped


def test_recordings_of_different_length_that_do_not_meet_in_sight_never_do() -> None:
    # Both cycles are whole minutes: device 0 is there at even seconds only, device 1 at odd ones.
    rows = [(0, float(2 * k), 2.0 * k + 1) for k in range(10)] + [(1, 2.0 * k + 1, 2.0 * k + 2) for k in range(20)]
    asked = table(rows, "wrap", [20.0, 40.0], 2)
    assert asked.next_time_with(1, 7.0) == 7.0
    assert asked.next_time_with(2, 3.5) == np.inf


def test_a_stay_too_short_for_the_clock_to_show_is_passed_over() -> None:
    # At 1e9 s the clock goes in steps of 1.2e-7 s; stays of 1e-9 s at 5.3 s of every 10 lie between two of them.
    rows = [(0, 5.3, 5.3 + 1e-9), (1, 5.3, 5.3 + 1e-9), (1, 7.0, 8.0)]
    for lengths_s in ([10.0, 10.0], [10.0, 20.0]):
        asked, ids = table(rows, "wrap", lengths_s, 2), np.arange(2)
        assert asked.next_available(ids, 1e9).tolist() == [np.inf, 1e9 + 7.0]
        assert asked.next_time_with(1, 1e9) == 1e9 + 7.0
        assert asked.next_time_with(2, 1e9) == np.inf


@pytest.fixture(scope="module")
def week() -> Intervals:
    return read_intervals(Path(__file__).parents[2] / "traces" / "sample-week.parquet")


def test_the_shipped_week_has_who_its_rows_say_at_any_one_instant(week: Intervals) -> None:
    asked, ids = IntervalTable(week, "absent"), np.arange(200)
    rng = np.random.default_rng(0)
    edges_s = rng.choice(np.concatenate([week.start_s, week.end_s]), 150, replace=False)
    for t_s in [*edges_s, *rng.uniform(0, WEEK_S, 150)]:
        there = np.zeros(200, dtype=bool)
        there[week.device[(week.start_s <= t_s) & (t_s < week.end_s)]] = True
        assert asked.available(ids, t_s).tolist() == there.tolist(), t_s


def test_the_shipped_week_finds_the_first_instant_with_enough_phones_however_far_ahead(
    week: Intervals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stays, "_ROWS_OF_DEVICE", 0)
    monkeypatch.setattr(stays, "_LEAST_ROWS", 1 << 10)
    assert len(week.start_s) == 21_352
    # Counted up and down edge by edge, those who leave before those who come at one instant; two weeks end to end.
    edges = [(t, 1) for t in week.start_s.tolist()] + [(t, -1) for t in week.end_s.tolist()]
    edges = sorted(edges + [(t + WEEK_S, step) for t, step in edges])
    instants_s, counts = np.array([t for t, _ in edges]), np.cumsum([step for _, step in edges])
    asked, absent = IntervalTable(week, "wrap"), IntervalTable(week, "absent")
    starts_ahead = []
    for t_s in np.append(0.0, np.random.default_rng(0).uniform(0, WEEK_S, 12)):
        now = int(counts[np.searchsorted(instants_s, t_s, "right") - 1])
        for count in [*range(0, 200, 9), *range(asked.most_at_once() - 4, asked.most_at_once() + 2)]:
            enough_s = instants_s[(instants_s > t_s) & (counts >= count)]
            expected = t_s if now >= count else enough_s.min(initial=np.inf)
            assert asked.next_time_with(count, t_s) == expected, (count, t_s)
            assert absent.next_time_with(count, t_s) == (expected if expected < WEEK_S else np.inf), (count, t_s)
            if expected < WEEK_S:
                starts_ahead.append(np.count_nonzero((week.start_s > t_s) & (week.start_s <= expected)))
    # Farther than one window of time, and than two.
    assert max(starts_ahead) > 3 * stays._LEAST_ROWS
