"""Allocators of sizes that follow the channel: worked numbers, a root finder, and all combinations."""

import numpy as np
import pytest
from scipy.optimize import brentq

from edgesim.learning.codecs import make_codec
from edgesim.radio.allocators import ALLOCATORS, Request, Sizes
from edgesim.radio.bandwidth import min_bandwidth_hz, rate_bps
from edgesim.radio.link import ShannonLink

NOISE_W_PER_HZ, D = 1e-20, 558_802
SNR_HZ, LEFT_S, WEIGHT = [1_424_772_642.107986, 1e10, 2e8], [0.5, 0.4, 0.6], [0.5, 0.3, 0.2]
LEVELS = [2 ** (width - 1) - 1 for width in range(2, 17)]


def request_of(snr_hz, left_s, weight, band_hz, d=D, floor=1, link=None):
    """Uploads of quantised updates of ``d`` numbers in one bucket, which are due in a second."""
    count, codec = len(snr_hz), make_codec("qsgd", {"bucket": max(d, 2)})
    link = link or ShannonLink(NOISE_W_PER_HZ)
    rx_power_w, ready_s = np.array(snr_hz) * NOISE_W_PER_HZ, 1 - np.array(left_s)

    def bits(s):
        return np.full(count, float(codec.bits(d, s)))

    ids = np.arange(count)
    need_hz = link.least_hz(ids, bits(floor), ready_s, 1.0, rx_power_w, 0.0)
    sizes = Sizes(bits, np.array(weight, dtype=float))
    return Request(ids, bits(floor), ready_s, rx_power_w, need_hz, link, 0.0, band_hz, 1.0, sizes)


def carried_bits(request, shares_hz):
    return rate_bps(shares_hz, request.rx_power_w, NOISE_W_PER_HZ) * (1 - request.ready_s)


def test_worked_numbers_of_equal_bits():
    request = request_of(SNR_HZ, LEFT_S, WEIGHT, 1.5e6)
    shares_hz = ALLOCATORS["equal_bits"]().allocate(request)
    expected_hz = [478_937.271052, 481_683.719915, 539_379.009033]
    assert shares_hz.tolist() == pytest.approx(expected_hz, rel=1e-11)
    assert carried_bits(request, shares_hz).tolist() == pytest.approx([2_763_250.680818] * 3, rel=1e-12)
    assert make_codec("qsgd", {"bucket": D}).largest(D, 2_763_250) == 2**3 - 1
    assert make_codec("topk", {}).largest(D, 2_763_250) == 75_497


@pytest.mark.parametrize(
    ("band_hz", "widths", "total_hz", "variance"),
    [(1e6, [4, 3, 3], 950_240.715680, 0.0195464853), (1.5e6, [5, 5, 4], None, 0.0023274376)],
)
def test_worked_numbers_of_least_error(band_hz, widths, total_hz, variance):
    request = request_of(SNR_HZ, LEFT_S, WEIGHT, band_hz)
    shares_hz = ALLOCATORS["least_error"]().allocate(request)
    levels = [2 ** (width - 1) - 1 for width in widths]
    bits = np.array([D * width + 32.0 for width in widths])
    expected_hz = min_bandwidth_hz(bits, np.array(LEFT_S), request.rx_power_w, NOISE_W_PER_HZ)
    assert shares_hz.tolist() == pytest.approx(expected_hz.tolist(), rel=1e-12)
    assert total_hz is None or shares_hz.sum() == pytest.approx(total_hz, abs=6e-7)
    assert (np.array(WEIGHT) ** 2 / np.array(levels) ** 2).sum() == pytest.approx(variance, abs=6e-11)


@pytest.mark.parametrize("seed", range(20))
def test_equal_bits_is_the_root_of_the_whole_band(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 9))
    request = request_of(
        10 ** rng.uniform(7, 10, count), rng.uniform(0.1, 1, count), np.ones(count), 10 ** rng.uniform(5.5, 8)
    )

    def excess_hz(bits):
        return (
            min_bandwidth_hz(bits, 1 - request.ready_s, request.rx_power_w, NOISE_W_PER_HZ).sum() - request.bandwidth_hz
        )

    # At the wide-band limit of the weakest link no band would do.
    most = (request.rx_power_w / NOISE_W_PER_HZ / np.log(2) * (1 - request.ready_s)).min()
    bits = brentq(lambda bits: min(excess_hz(bits), 1e30), 1.0, most * (1 - 1e-9), xtol=1e-9, rtol=1e-14)
    shares_hz = ALLOCATORS["equal_bits"]().allocate(request)
    assert shares_hz.sum() <= request.bandwidth_hz
    assert carried_bits(request, shares_hz) == pytest.approx(np.full(count, bits), rel=1e-9)


def test_uploads_that_cannot_be_in_time_leave_equal_bits_to_the_others():
    request = request_of([1e9, 1e9, 1e9], [0.5, 0.0, 0.25], [1, 1, 1], 3e6)
    shares_hz = ALLOCATORS["equal_bits"]().allocate(request)
    assert shares_hz[1] == 1e6
    assert shares_hz[[0, 2]].sum() == pytest.approx(2e6)
    first, _, third = carried_bits(request, shares_hz)
    assert first == pytest.approx(third)
    alone = request_of([1e9, 1e9], [0.0, 0.0], [1, 1], 3e6)
    assert ALLOCATORS["equal_bits"]().allocate(alone).tolist() == [1.5e6, 1.5e6]


def best_of_all(request, weight):
    """Least sum of weight^2 / s^2 among all combinations of levels whose least bandwidths fit the band."""
    needs = np.array([request.least_hz(1.0, request.sizes.bits(s)) for s in LEVELS])
    errors = np.square(weight)[None, :] / np.square(np.array(LEVELS, dtype=float))[:, None]
    used_hz, error = np.zeros(1), np.zeros(1)
    for upload in range(len(weight)):
        used_hz, error = np.add.outer(used_hz, needs[:, upload]), np.add.outer(error, errors[:, upload])
        used_hz, error = used_hz[fits := used_hz <= request.bandwidth_hz], error[fits]
    return error.min()


def test_least_error_beside_all_combinations():
    """Never better than the best, never worse by more than the step that found no room, and mostly the best itself.

    Of 2 to 5 uploads; the page quotes how many are the best, and how far the worst is above it.
    """
    rng, above = np.random.default_rng(7), []
    for _ in range(300):
        count = int(rng.integers(2, 6))
        weight = rng.uniform(0.1, 1, count)
        request = request_of(10 ** rng.uniform(7, 10, count), rng.uniform(0.1, 1, count), weight, 1.0, d=1_000)
        floor_hz = request.need_hz.sum()
        band_hz = floor_hz * rng.uniform(1.01, 6)
        request = request_of(request.rx_power_w / NOISE_W_PER_HZ, 1 - request.ready_s, weight, band_hz, d=1_000)
        shares_hz = ALLOCATORS["least_error"]().allocate(request)
        assert shares_hz.sum() <= band_hz * (1 + 1e-12)
        codec = make_codec("qsgd", {"bucket": 1_000})
        levels = np.array([codec.largest(1_000, int(bits * (1 + 1e-9))) for bits in carried_bits(request, shares_hz)])
        error, best = (weight**2 / levels**2).sum(), best_of_all(request, weight)
        assert error >= best * (1 - 1e-12)
        above.append(error / best - 1)
        # The relaxed problem, in which a part of a step may be taken, bounds the best from below.
        after = 2 * levels + 1
        gains = (weight**2 * (1 / levels**2 - 1 / after**2))[levels < LEVELS[-1]]
        assert error - best <= gains.max(initial=0.0) * (1 + 1e-9)
    assert (np.sum(np.array(above) <= 1e-12), round(100 * max(above))) == (241, 90)


def test_least_error_gives_an_equal_share_to_what_cannot_be_in_time_and_the_rest_to_the_others():
    request = request_of([1e9, 1e9, 1e9], [0.5, 0.0, 0.5], [1, 1, 1], 6e6)
    shares_hz = ALLOCATORS["least_error"]().allocate(request)
    assert shares_hz[1] == 2e6
    without = request_of([1e9, 1e9], [0.5, 0.5], [1, 1], 4e6)
    assert shares_hz[[0, 2]].tolist() == ALLOCATORS["least_error"]().allocate(without).tolist()
    assert carried_bits(request, shares_hz)[0] > 2 * request.payload_bits[0]
    alone = request_of([1e9, 1e9], [0.0, 0.0], [1, 1], 3e6)
    assert ALLOCATORS["least_error"]().allocate(alone).tolist() == [1.5e6, 1.5e6]


def test_sizes_below_the_floor_are_not_chosen_and_a_band_too_narrow_is_shared_as_the_least():
    request = request_of(SNR_HZ, LEFT_S, WEIGHT, 2e6, floor=7)
    shares_hz = ALLOCATORS["least_error"]().allocate(request)
    assert (shares_hz >= request.need_hz).all()
    narrow = request_of(SNR_HZ, LEFT_S, WEIGHT, 2e5)
    assert ALLOCATORS["least_error"]().allocate(narrow).tolist() == ALLOCATORS["least"]().allocate(narrow).tolist()
