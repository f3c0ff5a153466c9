"""Whole runs against closed forms: the longest of many compute delays."""

import numpy as np
import pytest
from whole_runs import TIMED, play


@pytest.mark.parametrize("devices", [1, 5, 30])
def test_without_an_uplink_a_round_lasts_as_long_as_the_longest_of_its_compute_delays(tmp_path, devices):
    """The largest of K delays a m + (m/mu) Exp(1) has mean a m + (m/mu) H_K and variance (m/mu)^2 sum 1/k^2.

    One bit takes nanoseconds, and nobody misses 10 s.
    """
    sections = {
        "rounds": 200,
        "devices": {"count": devices, "a_s_per_sample": 0.001, "mu_samples_per_s": 800.0},
        "learning": {"steps": 5, "batch_size": 32},
        "round": {"payload_bits": 1.0, "tmax_s": 10.0, "admission": "count", "count": devices},
    }
    rounds = play(tmp_path, TIMED, sections, seed=2, round={"allocator": "equal_share"}).rounds
    assert rounds["arrived"].tolist() == [devices] * 200
    k = np.arange(1, devices + 1)
    standard_error_s = 0.2 * np.sqrt(np.sum(1 / k**2) / 200)
    lasted_s = rounds["t_end_s"] - rounds["t_start_s"]
    assert lasted_s.mean() == pytest.approx(0.16 + 0.2 * np.sum(1 / k), abs=3 * standard_error_s)
