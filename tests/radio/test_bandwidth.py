"""Worked numbers: FedTeddi, eq. 14 with its section V-A; oracles: bisection in 60 digits, brentq."""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.transmission import charged_bits
from edgesim.radio.bandwidth import min_bandwidth_hz, rate_bps

TX_POWER_W, NOISE_W_PER_HZ = 10**-0.7, 10**-20.4
PADDED_BITS, UNPADDED_BITS = 17_881_664, 8_297_024


def macro_rx_power_w(distance_km: Any) -> Any:
    return TX_POWER_W * 10 ** (-(128.1 + 37.6 * np.log10(distance_km)) / 10)


def root_hz(payload_bits: float, time_left_s: float, rx_power_w: float, noise_w_per_hz: float) -> float:
    """Least bandwidth by bisection of the rate equation itself, for the exact arguments, in 60 digits."""
    with localcontext(prec=60):
        payload, time_left, power, noise = map(Decimal, (payload_bits, time_left_s, rx_power_w, noise_w_per_hz))
        low, high = Decimal(1), Decimal(10) ** 40
        while high - low > high * Decimal("1e-20"):
            middle = (low * high).sqrt() if high > 2 * low else (low + high) / 2
            nats = middle * (1 + power / (middle * noise)).ln() * time_left
            low, high = (middle, high) if nats < payload * Decimal(2).ln() else (low, middle)
        return float(high)


@pytest.mark.parametrize(
    ("payload_bits", "tmax_s", "distance_km", "expected_hz"),
    [
        (PADDED_BITS, 1.0, 0.25, 4_263_173.189349),
        (PADDED_BITS, 1.0, 0.10, 2_535_552.539875),
        (UNPADDED_BITS, 1.0, 0.25, 1_709_973.405417),
        (PADDED_BITS, 0.8, 0.25, 7_955_201.993443),
    ],
)
def test_the_least_bandwidths_of_fedteddis_cell(payload_bits, tmax_s, distance_km, expected_hz):
    power = macro_rx_power_w(distance_km)
    bandwidth = min_bandwidth_hz(payload_bits, tmax_s - 0.5, power, NOISE_W_PER_HZ)
    assert bandwidth == pytest.approx(expected_hz, rel=1e-12)


@pytest.mark.parametrize(
    ("codec", "options", "expected_hz", "devices"),
    [
        ("none", {}, 4_263_173.189349, 4),
        ("half", {}, 1_867_015.882400, 10),
        ("qsgd", {"bucket": 558_802}, 376_053.358352, 53),
        ("sign", {}, 79_056.605786, 252),
        ("topk", {}, 29_090.660576, 687),
    ],
)
def test_the_least_bandwidths_of_coded_updates(codec, options, expected_hz, devices):
    """558,802 numbers at 250 m with half a second left, and how many devices 20 MHz serve."""
    bits = charged_bits(make_codec(codec, options), 558_802)
    bandwidth = min_bandwidth_hz(bits, 0.5, macro_rx_power_w(0.25), NOISE_W_PER_HZ)
    assert bandwidth == pytest.approx(expected_hz, abs=6e-7, rel=0)
    assert 20e6 // bandwidth == devices


@pytest.mark.parametrize(
    ("time_left_s", "expected_hz"),
    [(0.8, 130_418.720), (0.5, 227_748.247), (0.3, 422_279.536), (0.9 + 0.2 * np.log(0.05), 420_815.506)],
)
def test_the_least_bandwidths_of_the_worked_round(time_left_s, expected_hz):
    # Rate B log2(1 + 1e8 / B), payload 1e6 bits.
    assert min_bandwidth_hz(1e6, time_left_s, 1e8, 1.0) == pytest.approx(expected_hz, abs=6e-4)


@pytest.mark.parametrize("payload_bits", [1e3, 1e5, PADDED_BITS, 1e10])
@pytest.mark.parametrize(
    ("gamma", "rel"),
    [(gamma, 1e-9) for gamma in (1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.9899999, 0.99, 0.9900001, 0.995, 0.999)]
    + [(1 - 1e-4, 1e-6), (1 - 1e-6, 1e-6), (1 - 1e-9, 1e-6)],
)
def test_the_least_bandwidth_agrees_with_a_root_finder_in_60_digits(payload_bits, gamma, rel):
    time_left = 0.37
    power = NOISE_W_PER_HZ * payload_bits * np.log(2) / (time_left * gamma)
    expected = root_hz(payload_bits, time_left, power, NOISE_W_PER_HZ)
    assert min_bandwidth_hz(payload_bits, time_left, power, NOISE_W_PER_HZ) == pytest.approx(expected, rel=rel)


def test_infeasible_uploads_need_infinite_bandwidth():
    # Gamma = 1 at a gain of 4.946106e-13 for 17,881,664 bits in 0.5 s.
    gain = np.array([4.946106e-13 * 1.000001, 4.946106e-13 * 0.999999, 1e-15, 0.0])
    need = min_bandwidth_hz(PADDED_BITS, 0.5, TX_POWER_W * gain, NOISE_W_PER_HZ)
    assert np.isfinite(need).tolist() == [True, False, False, False]
    assert need[1:].tolist() == [np.inf] * 3
    time_left = [0.0, -1e-300, -1.0, -np.inf]
    assert min_bandwidth_hz(PADDED_BITS, time_left, 1e-11, NOISE_W_PER_HZ).tolist() == [np.inf] * 4


@given(st.just(0.0) | st.floats(1.0, 1e15), st.floats(-1e12, 1e12), st.floats(0.0, 1e9))
def test_the_need_is_never_negative_nor_nan_and_warns_of_nothing(payload, time_left, power):
    assert min_bandwidth_hz(payload, time_left, power, NOISE_W_PER_HZ) >= 0


def test_arguments_broadcast_and_scalars_give_a_scalar():
    payload = np.array([1e5, 1e6])[:, None]
    time_left = np.array([0.3, 0.5, 0.8])
    need = min_bandwidth_hz(payload, time_left, 1e8, 1.0)
    assert need.shape == (2, 3)
    assert need.dtype == np.float64
    assert np.ndim(min_bandwidth_hz(1e6, 0.5, 1e8, 1.0)) == 0
    assert need[1, 1] == min_bandwidth_hz(1e6, 0.5, 1e8, 1.0)
    assert min_bandwidth_hz(np.empty(0), 0.5, 1e8, 1.0).shape == (0,)


def test_the_rate_of_shared_bands_in_worked_numbers():
    # Two equal devices with p / n = 1e9 Hz: half of 1 MHz each, and all of it for one.
    assert rate_bps(0.5e6, 1e9, 1.0) == pytest.approx(5_483_252.726, abs=1e-3)
    assert rate_bps(1e6, 1e9, 1.0) == pytest.approx(9_967_226.259, abs=1e-3)


def test_a_very_wide_band_reaches_the_wide_band_limit():
    assert rate_bps(1e18, 1e-14, NOISE_W_PER_HZ) == pytest.approx(1e-14 / (NOISE_W_PER_HZ * np.log(2)), rel=1e-9)
