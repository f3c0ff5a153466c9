"""Tests of the allocator."""

import numpy as np

from edgesim.radio.allocators import Request
from edgesim.radio.link import ShannonLink
from edgesim.templates.allocator import LeastAndEqual


def request(band_hz: float) -> Request:
    """Three uploads of 1 Mbit that end within 1 s on some 0.1, 0.1 and 0.2 MHz."""
    link, power_w = ShannonLink(noise_w_per_hz=1e-20), np.array([1e-12, 1e-12, 3e-14])
    ids, bits, ready_s = np.arange(3), np.full(3, 1e6), np.zeros(3)
    need_hz = link.least_hz(ids, bits, ready_s, 1.0, power_w, 0.0)
    return Request(ids, bits, ready_s, power_w, need_hz, link, 0.0, band_hz, 1.0)


def test_what_is_left_over_is_shared_equally() -> None:
    """A wide band: each upload gets the same beyond its need."""
    wide = request(1e6)
    shares_hz = LeastAndEqual().allocate(wide)
    assert np.isclose(shares_hz.sum(), 1e6)
    assert np.allclose(np.diff(shares_hz - wide.need_hz), 0)
    assert np.all(shares_hz > wide.need_hz)


def test_a_band_that_is_too_narrow_is_shared_in_proportion_to_the_needs() -> None:
    """A narrow band: each upload gets the same part of its need."""
    narrow = request(1e5)
    shares_hz = LeastAndEqual().allocate(narrow)
    assert np.isclose(shares_hz.sum(), 1e5)
    assert np.allclose(shares_hz / narrow.need_hz, shares_hz[0] / narrow.need_hz[0])
