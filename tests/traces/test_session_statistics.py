"""Statistics against counting by hand, by second, and against the published numbers of the generated week."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.streams import Streams
from edgesim.traces.intervals import Intervals, joined
from edgesim.traces.models.renewal import Renewal
from edgesim.traces.session_statistics import anatomy

DEVICES = 3
periods = st.lists(
    st.tuples(st.integers(0, DEVICES - 1), st.integers(0, 120), st.integers(0, 120)), min_size=1, max_size=20
)


def made(rows: list[tuple[int, int, int]], scale_s: float = 1.0, length: int = 120) -> Intervals:
    device, start, end = np.array(rows, dtype=float).reshape(-1, 3).T
    return joined(device.astype(np.int64), start * scale_s, end * scale_s, length * scale_s, DEVICES)


def grid(found: Intervals, scale_s: float, length: int = 120) -> np.ndarray:
    filled = np.zeros((DEVICES, length), dtype=bool)
    for device, start_s, end_s in zip(found.device, found.start_s, found.end_s, strict=True):
        filled[device, round(start_s / scale_s) : round(end_s / scale_s)] = True
    return filled


@given(periods)
def test_counts_over_time_are_those_of_every_second(rows):
    found = made(rows)
    instants_s, counts = anatomy(found).counts_over_time
    assert instants_s[0] == 0.0
    assert np.all(np.diff(counts) != 0)
    at = np.searchsorted(instants_s, np.arange(120), "right") - 1
    assert counts[at].tolist() == grid(found, 1.0).sum(axis=0).tolist()


@given(periods)
def test_shares_and_hours_are_those_of_a_grid_of_quarter_hours(rows):
    # 120 quarters of an hour: 30 hours, of which six come twice.
    found = made(rows, 900.0)
    filled, got = grid(found, 900.0), anatomy(found)
    assert got.online_share == pytest.approx(filled.mean(axis=1))
    assert got.pooled_share == pytest.approx(filled.mean())
    hour = (np.arange(120) // 4) % 24
    for h in range(24):
        assert got.share_by_hour[h] == pytest.approx(filled[:, hour == h].mean(), abs=1e-12)
    padded = np.pad(filled, ((0, 0), (1, 0)))
    assert got.sessions.tolist() == (np.diff(padded.astype(int), axis=1) == 1).sum(axis=1).tolist()


def test_gaps_and_sessions_by_hand():
    got = anatomy(made([(0, 0, 10), (0, 15, 20), (0, 50, 60), (2, 7, 8)]))
    assert got.sessions.tolist() == [3, 0, 1]
    assert got.duration_s.tolist() == [10, 5, 10, 1]
    assert got.gap_s.tolist() == [5, 30]
    assert got.mean_gap_s.tolist() == [17.5]
    assert got.longest_gap_s.tolist() == [30, 0, 0]


@pytest.fixture(scope="module")
def week():
    return anatomy(Renewal().intervals(4_000, Streams(1)))


def test_the_generated_week_is_online_as_often_as_published(week):
    # FedDance, section 2.2: 20.26 % of all time. Four standard errors over the devices.
    error = week.online_share.std() / np.sqrt(len(week.online_share))
    assert week.pooled_share == pytest.approx(0.2026, abs=4 * error)


def test_its_sessions_are_of_minutes_and_dozens_to_hundreds_a_week(week):
    assert 180 < np.median(week.duration_s) < 600
    # "Most sessions minutes long", read strictly: more than half last neither seconds nor the better part of an hour.
    assert np.mean((week.duration_s >= 60) & (week.duration_s < 600)) > 0.5
    assert np.mean(week.duration_s < 60) < 0.15
    assert np.mean(week.duration_s < 1800) > 0.8
    assert np.mean((week.sessions >= 12) & (week.sessions <= 999)) > 0.9
    assert 0.3 < np.mean(week.sessions >= 100) < 0.5


def test_over_65_percent_of_its_devices_have_gaps_above_an_hour(week):
    # Strictly read: the mean gap. That any gap is so long holds for nearly all.
    assert np.count_nonzero(week.mean_gap_s > 3600) / len(week.sessions) > 0.65
    assert np.mean(week.longest_gap_s > 3600) > 0.95


def test_its_nights_are_about_twice_as_busy_as_its_afternoons(week):
    hours = week.share_by_hour
    assert 3 <= np.argmax(hours) <= 6
    assert 13 <= np.argmin(hours) <= 17
    # The FLASH phones: 12.0 % at 4 h, 5.7 % at 13 h, a ratio of 2.1.
    assert 1.7 < hours.max() / hours.min() < 2.4


@pytest.mark.slow
def test_its_first_day_is_like_its_last_one():
    found = Renewal(rhythm=0.0).intervals(10_000, Streams(2))
    hours_s = np.arange(0.0, 604_800.0, 3600.0)
    instants_s, counts = anatomy(found).counts_over_time
    daily = (counts[np.searchsorted(instants_s, hours_s, "right") - 1] / 10_000).reshape(7, 24).mean(axis=1)
    # In equilibrium from the start: no day differs from the mean by more than noise between devices leaves.
    assert daily == pytest.approx(np.full(7, 0.2026), abs=0.008)


def test_options_move_what_they_are_named_after():
    few = anatomy(Renewal(online_share=0.05, sessions_per_week=20.0, rhythm=0.0).intervals(5000, Streams(0)))
    assert few.pooled_share == pytest.approx(0.05, abs=0.006)
    assert np.median(few.sessions) == pytest.approx(20, abs=3)
    assert few.share_by_hour.max() / few.share_by_hour.min() < 1.15


def test_recorded_time_ends_with_each_recording():
    devices, ends_s = np.array([0, 1]), np.array([10.0, 30.0])
    got = anatomy(Intervals(devices, np.zeros(2), ends_s, np.array([10.0, 40.0])))
    assert got.recorded_until_s(np.array([0.0, 5.0, 10.0, 25.0, 40.0, 99.0])).tolist() == [0, 10, 20, 35, 50, 50]


def test_the_share_of_a_device_is_of_its_own_recording():
    got = anatomy(Intervals(np.arange(2), np.zeros(2), np.array([5.0, 10.0]), np.array([10.0, 40.0])))
    assert got.online_share.tolist() == [0.5, 0.25]
