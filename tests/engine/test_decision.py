"""Admission by least bandwidth: the scan over an array equals the walk device by device."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.engine.decision import _fill, admit

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


class OneByOne:
    """Offers devices singly, in an order of its own, and hears each answer."""

    def __init__(self, order):
        self.order, self.heard = order, []

    def choose(self, view):
        for device in self.order:
            self.heard.append((yield device))


@given(needs, st.lists(st.floats(2, 60), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_admission_one_by_one_takes_whoever_still_fits_the_band_of_its_station_and_nobody_else(needs_hz, bands, dice):
    count = len(needs_hz)
    # Ids with gaps, so that an id is no position.
    ids = np.cumsum([dice.randint(1, 3) for _ in range(count)]).astype(np.int64)
    station = np.array([dice.randrange(len(bands)) for _ in range(count)], dtype=np.int64)
    rows = dice.sample(range(count), count)
    selector = OneByOne([int(ids[row]) for row in rows])
    view = SimpleNamespace(round=1, ids=ids, need_hz=np.array(needs_hz))
    taken = admit("mine", selector.choose(view), view, station, np.array(bands), None)
    left = list(bands)
    expected = []
    for row in rows:
        expected.append(needs_hz[row] <= left[station[row]])
        if expected[-1]:
            left[station[row]] -= needs_hz[row]
    # Where a need equals what is left but for rounding, either answer is right.
    if all(abs(part) > 1e-9 for part in left):
        assert selector.heard == expected
        assert taken.tolist() == [row for row, fits in zip(rows, expected, strict=True) if fits]
    used = np.bincount(station[taken], weights=np.array(needs_hz)[taken], minlength=len(bands))
    assert (used <= np.array(bands) * (1 + 1e-12)).all()


@pytest.mark.parametrize("over", [0.99999, 1.00001, 1.01, 1.019])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_band_is_filled_to_its_last_hertz_and_not_one_further(over, at_once):
    """Three needs that exceed the band by little, or fit by little, offered one by one or in one array."""
    view = SimpleNamespace(round=1, ids=np.arange(3), need_hz=np.array([5e6, 5e6, 10e6 * over]))
    selector = OneByOne([np.arange(3)] if at_once else [0, 1, 2])
    taken = admit("mine", selector.choose(view), view, np.zeros(3, dtype=np.int64), np.array([20e6]), None)
    assert taken.tolist() == ([0, 1, 2] if over < 1 else [0, 1])
