"""Joining, clipping and complementing periods, against a grid of half seconds filled in by hand."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from interval_rows import rows

from edgesim.base.device_keys import texts
from edgesim.traces.intervals import Intervals, complement, first_devices, joined, renumbered

DEVICES, LENGTH = 3, 30
drawn_rows = st.lists(st.tuples(st.integers(0, DEVICES - 1), st.integers(-5, 40), st.integers(-5, 40)), max_size=25)


def grid(rows: list[tuple[int, int, int]]) -> np.ndarray:
    filled = np.zeros((DEVICES, LENGTH), dtype=bool)
    for device, start, end in rows:
        filled[device, max(int(start), 0) : max(int(end), 0)] = True
    return filled


def made(rows: list[tuple[int, int, int]]) -> Intervals:
    device, start, end = np.array(rows, dtype=float).reshape(-1, 3).T
    return joined(device.astype(np.int64), start, end, float(LENGTH), DEVICES)


def well_formed(found: Intervals) -> bool:
    same = found.device[1:] == found.device[:-1]
    ordered = np.all(np.diff(found.device) >= 0) and np.all(found.start_s[1:][same] > found.end_s[:-1][same])
    return bool(ordered and np.all(found.end_s > found.start_s))


@given(drawn_rows)
def test_joined_periods_cover_what_the_rows_cover_and_are_sorted_and_apart(drawn):
    found = made(drawn)
    assert well_formed(found)
    assert np.array_equal(grid(rows(found)), grid(drawn))


@given(drawn_rows)
def test_the_complement_covers_all_the_rest(drawn):
    found = complement(made(drawn))
    assert well_formed(found)
    assert np.array_equal(grid(rows(found)), ~grid(drawn))


def test_the_first_devices_keep_their_rows_and_lengths():
    whole = replace(made([(0, 1, 2), (1, 3, 4), (2, 5, 6), (1, 8, 9)]), unobserved_s=np.array([6.0, 0.0, 30.0]))
    found = first_devices(whole, 2)
    assert rows(found) == [(0, 1, 2), (1, 3, 4), (1, 8, 9)]
    assert found.device_count == 2
    # Nobody looked in 36 of 90 device-seconds, and in 6 of the 60 of those kept.
    assert (whole.unobserved_share, found.unobserved_share) == (0.4, 0.1)
    assert renumbered(whole, np.array([2, 0, 1])).unobserved_s.tolist() == [30.0, 6.0, 0.0]
    named = replace(whole, keys=texts("abc"), models=texts("XYZ"))
    moved = renumbered(named, np.array([2, 0, 1]))
    assert (moved.keys.tolist(), moved.models.tolist()) == (["c", "a", "b"], ["Z", "X", "Y"])
    assert first_devices(named, 2).keys.tolist() == ["a", "b"]
