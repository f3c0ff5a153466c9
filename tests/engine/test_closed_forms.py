"""Whole runs against closed forms: the longest of many compute delays."""

import numpy as np
import pytest
from whole_runs import TIMED, play


@pytest.mark.parametrize("devices", [1, 5, 30])
def test_without_an_uplink_a_round_lasts_as_long_as_the_longest_of_its_compute_delays(tmp_path, devices):
    # The largest of K delays a m + (m/mu) Exp(1) has mean a m + (m/mu) H_K and variance (m/mu)^2 sum 1/k^2. One bit on
    # an equal share of the band takes nanoseconds, and nobody misses 10 s.
    count, spread_s = 200, 160 / 800.0
    knobs = {"payload_bits": 1.0, "tmax_s": 10.0, "admission": "count", "count": devices, "allocator": "equal_share"}
    rounds = play(
        tmp_path,
        TIMED,
        seed=2,
        rounds=count,
        devices={"count": devices, "a_s_per_sample": 0.001, "mu_samples_per_s": 800.0},
        learning={"steps": 5, "batch_size": 32},
        round=knobs,
    ).rounds
    assert rounds["arrived"].tolist() == [devices] * count
    k = np.arange(1, devices + 1)
    expected_s = 0.001 * 160 + spread_s * np.sum(1 / k)
    standard_error_s = spread_s * np.sqrt(np.sum(1 / k**2) / count)
    lasted_s = rounds["t_end_s"] - rounds["t_start_s"]
    assert lasted_s.mean() == pytest.approx(expected_s, abs=3 * standard_error_s)
    assert rounds["t_end_s"].iloc[-1] == pytest.approx(lasted_s.sum())
