"""The course of one upload: the same sums as over the pieces of many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.radio.course import Course
from edgesim.radio.link import ShannonLink
from edgesim.radio.pieces import Pieces

LINK = ShannonLink(4e-21, 5.0)
POWERS = st.lists(st.floats(1e-15, 1e-8), min_size=1, max_size=8, unique=True)


def course_of(edges_s: list[float], powers_w: list[float], band_hz: float) -> Course:
    rates_bps = LINK.rates(np.array(band_hz), np.array(powers_w))
    return Course(edges_s, np.array(powers_w), rates_bps.tolist(), (rates_bps * np.diff(edges_s)).tolist(), edges_s[-1])


@given(POWERS, st.floats(0.0, 1.0), st.floats(1e3, 1e8), st.floats(1e4, 1e7))
def test_bits_and_ends_are_those_of_the_pieces(powers_w, begin, bits, band_hz):
    edges_s = np.append(np.arange(len(powers_w)) * 0.5, np.inf)
    course = course_of(edges_s.tolist(), powers_w, band_hz)
    pieces = Pieces(edges_s[None, :], np.array(powers_w)[None, :])
    start_s = begin * 0.5 * len(powers_w)
    end_s = course.end_s(LINK, band_hz, bits, start_s)
    assert end_s == pytest.approx(
        pieces.ends_s(LINK, np.array([band_hz]), np.array([bits]), np.array([start_s])).item(), rel=1e-12
    )
    assert course.bits(LINK, band_hz, start_s, end_s) == pytest.approx(bits, rel=1e-9)


def test_an_upload_that_ends_behind_the_known_part_has_no_end_yet():
    course = course_of([0.0, 1.0, 2.0], [1e-12, 2e-12], 1e6)
    assert np.isinf(course.end_s(LINK, 1e6, 1e12, 0.5))
    assert course.end_s(LINK, 1e6, 1.0, 2.0) > 2.0 or np.isinf(course.end_s(LINK, 1e6, 1.0, 2.0))


def test_what_lies_behind_the_end_changes_no_bit():
    """A run that is resumed knows other pieces behind its upload than one that was not stopped."""
    whole = course_of([0.0, 1.0, 2.0, 3.0], [1e-12, 3e-12, 2e-12], 1e6)
    part = course_of([0.5, 1.0, 2.0], [1e-12, 3e-12], 1e6)
    for bits in (1e5, 1e6, 3e6):
        ends_s = whole.end_s(LINK, 1e6, bits, 0.6), part.end_s(LINK, 1e6, bits, 0.6)
        assert ends_s[0] == ends_s[1]
        assert whole.bits(LINK, 1e6, 0.6, ends_s[0]) == part.bits(LINK, 1e6, 0.6, ends_s[0])
