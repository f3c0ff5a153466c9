import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.base.errors import EdgesimError
from edgesim.radio.allocators.equal_finish import equal_finish_s
from edgesim.radio.bandwidth import min_bandwidth_hz, rate_bps


def common_finish(bits, start_s, snr_hz, band_hz: float, latest_s: float) -> tuple[float, np.ndarray]:
    """Of uploads at Shannon rates, p / n = ``snr_hz``."""
    start_s = np.atleast_1d(start_s).astype(float)
    return equal_finish_s(
        lambda t_s: min_bandwidth_hz(bits, t_s - start_s, snr_hz, 1.0), start_s.max(), band_hz, latest_s
    )


def test_the_common_finish_of_the_worked_round():
    # Two uploads of 1e6 bits that start at 0.2 and 0.5 s, p / n = 1e8 Hz, band 500 kHz, deadline 1 s.
    finish_s, shares_hz = common_finish(1e6, [0.2, 0.5], 1e8, 500_000.0, 1.0)
    assert finish_s == pytest.approx(0.861332627, abs=1e-9)
    assert shares_hz.tolist() == pytest.approx([163_279.567, 336_720.433], abs=1e-3)


@st.composite
def uploads(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    n = draw(st.integers(1, 30))
    column = lambda low, high: np.array(draw(st.lists(st.floats(low, high), min_size=n, max_size=n)))  # noqa: E731
    payload, start, snr_hz = column(1e4, 1e8), column(0.0, 0.9), 10 ** column(8.5, 12.0)
    latest = draw(st.floats(1.5, 5.0))
    needed = float(min_bandwidth_hz(payload, latest - start, snr_hz, 1.0).sum())
    return payload, start, snr_hz, needed * draw(st.floats(1.0, 50.0)), latest


@settings(max_examples=60, deadline=None)
@given(uploads())
def test_the_common_finish_uses_the_band_up_without_ever_exceeding_it(case):
    payload, start, snr_hz, band_hz, latest = case
    finish_s, shares_hz = common_finish(payload, start, snr_hz, band_hz, latest)
    assert finish_s <= latest
    sums = [math.fsum(shares_hz), sum(shares_hz), sum(sorted(shares_hz)), sum(sorted(shares_hz)[::-1])]
    assert max(sums) <= band_hz
    assert sums[0] == pytest.approx(band_hz, rel=1e-8)
    ends_s = start + payload / rate_bps(shares_hz, snr_hz, 1.0)
    np.testing.assert_allclose(ends_s, finish_s, rtol=1e-9)


def test_needs_that_fill_the_band_exactly_keep_the_latest_instant():
    start = np.array([0.1, 0.2, 0.3])
    needs = min_bandwidth_hz(1e6, 1.0 - start, 1e8, 1.0)
    finish_s, shares_hz = common_finish(1e6, start, 1e8, float(needs.sum()), 1.0)
    assert finish_s == 1.0
    assert sum(shares_hz) <= needs.sum()
    np.testing.assert_allclose(shares_hz, needs, rtol=1e-14)


def test_a_band_that_cannot_make_the_latest_instant_is_refused_with_the_remedy():
    with pytest.raises(EdgesimError, match=r"2 uploads need 358167 Hz to end by 1 s.* 300000 Hz; schedule fewer"):
        common_finish(1e6, [0.2, 0.5], 1e8, 300_000.0, 1.0)
