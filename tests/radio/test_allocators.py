"""Ways to share one band; equal finish is optimal for the round's end."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from edgesim.radio.allocators import ALLOCATORS, Request
from edgesim.radio.allocators.equal_finish import allocate as equal_finish
from edgesim.radio.bandwidth import min_bandwidth_hz, rate_bps
from edgesim.radio.link import ShannonLink

NOISE_W_PER_HZ = 1e-20


def request_of(bits, ready_s, snr_hz, band_hz, deadline_s=2.0):
    bits, ready_s = np.array(bits, dtype=float), np.array(ready_s, dtype=float)
    rx_power_w = np.array(snr_hz, dtype=float) * NOISE_W_PER_HZ
    need_hz = min_bandwidth_hz(bits, deadline_s - ready_s, rx_power_w, NOISE_W_PER_HZ)
    return Request(
        np.arange(len(bits)), bits, ready_s, rx_power_w, need_hz, ShannonLink(NOISE_W_PER_HZ), 0.0, band_hz, deadline_s
    )


def ends_s(request, bandwidth_hz):
    return request.ready_s + request.payload_bits / rate_bps(bandwidth_hz, request.rx_power_w, NOISE_W_PER_HZ)


def test_least_bandwidths_that_fit_are_left_as_they_are_and_end_at_the_deadline():
    request = request_of([1e6, 2e6], [0.2, 0.5], [1e8, 1e8], 1e7)
    bandwidth_hz = ALLOCATORS["least"]().allocate(request)
    assert bandwidth_hz.tolist() == request.need_hz.tolist()
    assert ends_s(request, bandwidth_hz).tolist() == pytest.approx([2.0, 2.0])


def test_equal_and_proportional_shares_are_what_they_say():
    request = request_of([1e6, 3e6], [0.2, 0.5], [1e8, 1e8], 1e6)
    assert ALLOCATORS["equal_share"]().allocate(request).tolist() == [5e5, 5e5]
    assert ALLOCATORS["proportional"]().allocate(request).tolist() == [2.5e5, 7.5e5]


@pytest.mark.parametrize("seed", range(8))
def test_no_sharing_of_the_band_ends_the_round_before_equal_finish(seed):
    """Against a general solver: least T with start + bits / rate(B) <= T for all and sum B <= band."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 7))
    request = request_of(
        rng.uniform(1e5, 5e6, count), rng.uniform(0, 1, count), 10 ** rng.uniform(6.5, 9, count), 2e6, 1.5
    )
    bandwidth_hz = equal_finish(request)
    finish_s = ends_s(request, bandwidth_hz)
    assert finish_s == pytest.approx(np.full(count, finish_s.max()), rel=1e-6)
    # Variables scaled to 1: shares of the band, then T.
    start = np.append(np.full(count, 1 / count), 2 * ends_s(request, np.full(count, 2e6 / count)).max())
    solved = minimize(
        lambda x: x[-1],
        start,
        jac=lambda x: np.append(np.zeros(count), 1.0),
        bounds=[(1e-6, 1.0)] * count + [(0, None)],
        constraints=[
            {"type": "ineq", "fun": lambda x: x[-1] - ends_s(request, x[:-1] * 2e6)},
            {"type": "ineq", "fun": lambda x: 1.0 - x[:-1].sum()},
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert solved.success, solved.message
    assert finish_s.max() == pytest.approx(solved.x[-1], rel=1e-4)
    assert finish_s.max() <= solved.x[-1] * (1 + 1e-6)


def test_equal_finish_goes_beyond_a_deadline_that_cannot_be_met():
    request = request_of([1e7] * 4, [0.0] * 4, [1e8] * 4, 1e6, 1.0)
    finish_s = ends_s(request, equal_finish(request))
    assert finish_s.min() > 1.0
    assert finish_s == pytest.approx(np.full(4, finish_s[0]))


def test_least_bandwidths_that_exceed_the_band_are_cut_alike():
    request = request_of([1e6, 2e6], [0.2, 0.5], [1e8, 1e8], 1e7)
    bandwidth_hz = ALLOCATORS["least"]().allocate(replace(request, bandwidth_hz=request.need_hz.sum() / 4))
    assert bandwidth_hz == pytest.approx(request.need_hz / 4, rel=1e-12)
