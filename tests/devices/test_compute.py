"""Constants of FedTeddi, section V-A: 0.5 ms per sample, 2 samples per ms; 5 steps of 32 samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from edgesim.devices.compute import compute_delay_quantile_s, compute_delay_s
from edgesim.streams import Streams

A_S, MU_PER_S, SAMPLES = 0.0005, 2000.0, 160
IDS = np.arange(20_000)


def test_the_delay_follows_the_shifted_exponential_of_equation_4():
    delay_s = compute_delay_s(A_S, MU_PER_S, SAMPLES, Streams(1), IDS, 1)
    # Least 80 ms, mean 160 ms, P(delay < 200 ms) = 1 - exp(-1.5) = 0.776870.
    assert delay_s.min() >= 0.080
    assert delay_s.mean() == pytest.approx(0.160, abs=4 * 0.080 / np.sqrt(len(IDS)))
    share = np.mean(delay_s < 0.200)
    assert share == pytest.approx(0.776870, abs=4 * np.sqrt(0.7769 * 0.2231 / len(IDS)))
    assert stats.kstest(delay_s, stats.expon(0.080, 0.080).cdf).pvalue > 1e-4


def test_devices_of_different_speed_and_load_scale_the_same_draw():
    streams, ids = Streams(2), np.arange(4)
    unit = compute_delay_s(0.0, 1.0, 1, streams, ids, 3)
    a_s, mu_per_s, samples = (np.array([1e-3, 2e-3, 0, 0]), np.array([10.0, 20.0, 30.0, 40.0]), np.array([1, 2, 3, 4]))
    delay_s = compute_delay_s(a_s, mu_per_s, samples, streams, ids, 3)
    np.testing.assert_allclose(delay_s, [1e-3, 4e-3, 0, 0] + unit * [0.1, 0.1, 0.1, 0.1], rtol=1e-14)


def test_a_delay_is_a_function_of_seed_device_and_round_alone():
    everyone = compute_delay_s(A_S, MU_PER_S, SAMPLES, Streams(3), np.arange(50), 2)
    some = np.array([41, 7])
    assert compute_delay_s(A_S, MU_PER_S, SAMPLES, Streams(3), some, 2).tolist() == everyone[some].tolist()
    assert compute_delay_s(A_S, MU_PER_S, SAMPLES, Streams(3), some, 3).tolist() != everyone[some].tolist()
    assert compute_delay_s(A_S, MU_PER_S, SAMPLES, Streams(4), some, 2).tolist() != everyone[some].tolist()


def test_the_planned_delay_of_the_worked_round():
    # 0.1 s + Exp(mean 0.2 s) at 95 %: 0.1 - 0.2 ln 0.05.
    assert compute_delay_quantile_s(0.1, 5.0, 1, 0.95) == pytest.approx(0.699146455, abs=1e-9)


@given(st.floats(0, 0.01), st.floats(0.1, 1e5), st.integers(1, 10_000), st.floats(0, 0.9999))
def test_the_quantile_inverts_the_distribution(a_s, mu_per_s, samples, q):
    law = stats.expon(a_s * samples, samples / mu_per_s)
    quantile_s = compute_delay_quantile_s(a_s, mu_per_s, samples, q)
    assert quantile_s == pytest.approx(law.ppf(q), rel=1e-9)
