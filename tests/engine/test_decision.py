"""Admission by least bandwidth: the scan over an array equals the walk device by device."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgesim.engine.decision import _fill

needs = st.lists(st.floats(0.01, 3.0) | st.just(np.inf), max_size=400)


@given(needs, st.floats(0, 2), st.floats(2, 60))
def test_filling_a_band_from_an_array_equals_the_walk_one_by_one(needs_hz, used_hz, band_hz):
    fits, total_hz = _fill(np.array(needs_hz), np.arange(len(needs_hz)), used_hz, band_hz)
    expected = []
    for need_hz in needs_hz:
        expected.append(used_hz + need_hz <= band_hz)
        used_hz += need_hz if expected[-1] else 0.0
    assert fits.tolist() == expected
    assert total_hz == used_hz
    assert total_hz <= band_hz
