"""The real recordings replayed; the statistics are those of the README beside them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike

from edgesim.config import AvailabilityConfig
from edgesim.devices.profile import Profile
from edgesim.streams import Streams
from edgesim.traces.convert import convert
from edgesim.traces.interval_file import read_intervals
from edgesim.traces.intervals import Intervals
from edgesim.traces.models import make_availability
from edgesim.traces.readers import Capacity, read_recording
from edgesim.traces.session_statistics import anatomy

DAY_S = 86_400.0


def renamed(source: Path, target: Path, length_s: float) -> Path:
    frame = pd.read_parquet(source).rename(columns={"device_id": "device"})
    frame["length_s"] = length_s
    frame.to_parquet(target)
    return target


@pytest.fixture
def flash(recordings: Path, tmp_path: Path) -> Path:
    available = renamed(recordings / "device-availability.parquet", tmp_path / "available.parquet", 5 * DAY_S)
    seen = renamed(recordings / "device-availability-observed.parquet", tmp_path / "seen.parquet", 5 * DAY_S)
    convert(available, tmp_path / "flash.parquet", observed=seen)
    return tmp_path / "flash.parquet"


@pytest.fixture
def fedscale(recordings: Path, tmp_path: Path) -> Path:
    lengths = recordings / "device-availability-fedscale100-devices.csv"
    convert(recordings / "device-availability-fedscale100.parquet", tmp_path / "fedscale.parquet", lengths=lengths)
    return tmp_path / "fedscale.parquet"


def agree(found: ArrayLike, printed: str) -> None:
    """Whether numbers are those of the README, to the last digit printed there."""
    texts_ = printed.split()
    digits = [len(text.partition(".")[2]) for text in texts_]
    values = np.atleast_1d(np.asarray(found, dtype=float))
    assert len(values) == len(texts_)
    off = np.abs(values - np.array([float(text) for text in texts_]))
    assert (off <= (0.5 + 1e-9) * 10.0 ** -np.array(digits)).all(), f"{values.tolist()} are not {printed}"


def spread(values: np.ndarray, shares: list[float]) -> np.ndarray:
    """Quantiles, and the mean behind them."""
    return np.append(np.quantile(values, shares), values.mean())


TAILS = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99]
QUARTILES = [0.25, 0.5, 0.75]


def test_the_half_hour_grid_of_723_phones_has_its_published_statistics(flash, tmp_path):
    intervals = read_intervals(flash)
    found, seen = anatomy(intervals), anatomy(read_intervals(tmp_path / "seen.parquet"))
    observed_s = seen.intervals.online_s
    assert (len(found.sessions), len(found.duration_s), len(found.gap_s)) == (723, 2784, 2272)
    assert np.count_nonzero(found.sessions == 0) == 211
    agree(observed_s.sum() / DAY_S, "2923")
    assert intervals.length_s - intervals.unobserved_s == pytest.approx(observed_s)
    agree(np.quantile(observed_s, [0, *QUARTILES, 1]) / 3600, "61 90.5 98.5 106 120")
    agree(100 * found.observed_share, "8.1")
    agree(100 * np.quantile(intervals.online_s / observed_s, [0.5, 0.75, 0.9, 1]), "4.2 12.1 22.4 98.4")
    agree(spread(found.sessions, [*QUARTILES, 1]), "0 3 6 29 3.85")
    agree(spread(found.duration_s / 3600, TAILS), "0.5 0.5 1.0 2.0 5.5 11.0 2.04")
    agree(spread(found.gap_s / 3600, TAILS), "0.5 2.0 6.5 15.5 24.5 59.6 10.8")
    hours = found.online_by_hour_s / seen.online_by_hour_s
    assert (np.argmax(hours), np.argmin(hours)) == (4, 13)
    agree([100 * hours.max(), 100 * hours.min()], "12.0 5.7")


def test_the_hundred_phones_of_one_second_have_theirs(fedscale, recordings):
    phones = pd.read_csv(recordings / "device-availability-fedscale100-devices.csv")
    rows = pd.read_parquet(recordings / "device-availability-fedscale100.parquet")
    found = anatomy(read_intervals(fedscale))
    # The README counts the rows as they are; the reader joins those that touch, which changes no phone's time.
    assert (len(rows), len(found.duration_s)) == (6296, 5709)
    device = np.searchsorted(phones["device_id"], rows["device_id"])
    times_s = (rows[name].to_numpy() for name in ("start_s", "end_s"))
    as_rows = anatomy(Intervals(device, *times_s, phones["period_s"].to_numpy(float)))
    assert as_rows.sessions.tolist() == phones["n_periods"].tolist()
    assert (len(as_rows.sessions), phones["model"].nunique()) == (100, 84)
    days = found.intervals.length_s / DAY_S
    assert (days.sum(), days.min(), np.median(days), days.max()) == (700, 5, 6, 13)
    agree(spread(as_rows.sessions, [*QUARTILES, 1]), "15.25 43 77.25 616 63.0")
    agree(spread(as_rows.duration_s / 3600, TAILS), "0.004 0.009 0.096 0.75 3.47 21.6 1.95")
    agree(spread(as_rows.gap_s / 3600, TAILS), "0 0 0.002 0.18 1.42 10.6 0.62")
    agree([100 * found.pooled_share, 100 * as_rows.pooled_share], "73.2 73.2")
    assert found.online_share == pytest.approx((phones["available_s"] / phones["period_s"]).to_numpy())
    agree(100 * np.quantile(found.online_share, [0, *QUARTILES, 1]), "43.9 67.4 74.3 81.5 97.4")


@pytest.mark.parametrize("name", ["flash", "fedscale"])
def test_replay_has_all_phones_that_the_rows_say_at_any_one_instant(name, request):
    path = request.getfixturevalue(name)
    rows, lengths_s = pd.read_parquet(path), read_intervals(path).length_s
    device, start_s, end_s = (rows[column].to_numpy() for column in ("device", "start_s", "end_s"))
    config, ids = AvailabilityConfig(model="table", file=str(path), after_end="wrap"), np.arange(len(lengths_s))
    asked = make_availability(config, len(ids), Streams(0))

    def there(t_s: float) -> np.ndarray:
        phase_s = t_s % lengths_s[device]
        return np.isin(ids, device[(start_s <= phase_s) & (phase_s < end_s)])

    rng = np.random.default_rng(1)
    edges_s = rng.choice(np.concatenate([start_s, end_s]), 100) + 30 * DAY_S * rng.integers(0, 2, 100)
    instants_s = [*edges_s, *rng.uniform(0, 40 * DAY_S, 100)]
    for t_s in instants_s:
        assert asked.available(ids, t_s).tolist() == there(t_s).tolist(), t_s
    for t_s in instants_s[80:120]:
        # As many as half a day later: the first of the starts ahead, one of each row, that brings them is before that.
        count = int(there(t_s + DAY_S / 2).sum())
        ahead_s = np.unique(start_s + (np.floor((t_s - start_s) / lengths_s[device]) + 1) * lengths_s[device])
        expected = next(instant_s for instant_s in [t_s, *ahead_s] if there(instant_s).sum() >= count)
        assert asked.next_time_with(count, t_s) == expected, (count, t_s)


def test_every_benchmarked_phone_gets_a_time(recordings):
    found = read_recording(recordings / "ai-benchmark-devices.csv")
    assert isinstance(found, Profile)
    assert (len(found.s_per_sample), len(set(found.models))) == (333, 307)
    assert np.median(found.s_per_sample) == pytest.approx(0.05)
    # Scores from 212 to 76,206.
    assert found.s_per_sample.max() / found.s_per_sample.min() == pytest.approx(76_206 / 212)


def test_recorded_phones_get_their_speeds_by_their_models(recordings):
    table = pd.read_csv(recordings / "device-availability-fedscale100-devices.csv")
    phones = read_recording(recordings / "device-availability-fedscale100-devices.csv")
    options = {"phones": phones, "model_map": recordings / "ai-benchmark-model-map.csv"}
    found = read_recording(recordings / "ai-benchmark-devices.csv", **options)
    assert isinstance(found, Profile)
    # The README beside the data: 84 of the 100 phones are in the map, 26 of them with a score.
    assert found.guessed == 74
    listed = pd.read_csv(recordings / "ai-benchmark-model-map.csv").set_index("android_model")
    # 610 lead to no name; two of the names that others lead to have no score.
    assert (len(listed), *listed.isna().sum(), table["model"].isin(listed.index).sum()) == (772, 610, 612, 84)
    scores = listed["ai_score"].reindex(table["model"]).to_numpy(copy=True)
    scores[np.isnan(scores)] = np.nanmedian(scores)
    assert 0.05 * 5063 / found.s_per_sample == pytest.approx(scores)


LINKS = {
    "ATT-LTE-driving-2016-up": "120 1.91 1.32 4.08 13.8",
    "ATT-LTE-driving-2016-down": "120 4.56 3.48 9.60 7.2",
    "ATT-LTE-driving-up": "1012 0.83 0.84 1.44 14.8",
    "ATT-LTE-driving-down": "786 5.17 5.28 9.12 5.1",
    "TMobile-LTE-short-up": "140 13.32 11.40 26.40 0.5",
    "TMobile-LTE-short-down": "140 16.70 14.40 30.36 3.6",
    "TMobile-LTE-driving-down": "475 12.77 10.08 27.00 8.0",
    "TMobile-UMTS-driving-up": "931 0.94 1.08 1.44 8.9",
    "TMobile-UMTS-driving-down": "928 2.02 1.80 4.08 11.7",
    "Verizon-EVDO-driving-up": "1065 0.84 0.96 1.32 11.1",
    "Verizon-EVDO-driving-down": "1062 0.52 0.36 1.32 25.0",
    "Verizon-LTE-short-up": "140 5.95 5.40 10.80 2.1",
    "Verizon-LTE-short-down": "140 5.03 4.32 10.32 1.6",
}
"""Seconds, mean, median and 90 % in Mbit/s, and per cent of empty bins, as the README prints them."""


def test_the_recorded_links_open_as_they_are_with_their_published_statistics(recordings):
    links = read_recording(recordings / "cellular-mahimahi-100ms.parquet")
    assert isinstance(links, Capacity)
    assert set(links.tables) == set(LINKS)
    for name, printed in LINKS.items():
        mbps = links.tables[name][1] / 1e6
        assert links.ends_s[name] == pytest.approx(0.1 * len(mbps))
        # Seconds and mean are those of the whole bins: the last one is cut off somewhere by the end of the recording,
        # and counted as 0.1 s it lowers the mean of two links in the last digit (13.31 and 5.94 Mbit/s).
        whole = mbps[:-1]
        empty = 100 * np.mean(mbps == 0)
        agree([0.1 * len(whole), whole.mean(), np.median(mbps), np.quantile(mbps, 0.9), empty], printed)
