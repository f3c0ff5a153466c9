"""The course of one upload: the same sums as over the pieces of many."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.radio.course import Course, PowerPieces
from edgesim.radio.link import ShannonLink
from edgesim.radio.pieces import Pieces

LINK = ShannonLink(4e-21, 5.0)
POWERS = st.lists(st.floats(1e-15, 1e-8), min_size=1, max_size=8, unique=True)


def course_of(edges_s: list[float], powers_w: list[float]) -> Course:
    pieces = PowerPieces(
        np.array(edges_s[:-1]), np.array(powers_w), np.array([0, len(powers_w)]), np.array(edges_s[-1:])
    )
    return Course(pieces, 0, 0, edges_s[0], edges_s[-1])


@given(POWERS, st.floats(0.0, 1.0), st.floats(1e3, 1e8), st.floats(1e4, 1e7))
def test_bits_and_ends_are_those_of_the_pieces(powers_w, begin, bits, band_hz):
    edges_s = np.append(np.arange(len(powers_w)) * 0.5, np.inf)
    course = course_of(edges_s.tolist(), powers_w)
    pieces = Pieces(edges_s[None, :], np.array(powers_w)[None, :])
    start_s = begin * 0.5 * len(powers_w)
    end_s = course.end_s(LINK, band_hz, bits, start_s)
    assert end_s == pytest.approx(
        pieces.ends_s(LINK, np.array([band_hz]), np.array([bits]), np.array([start_s])).item(), rel=1e-12
    )
    assert course.bits(LINK, band_hz, start_s, end_s) == pytest.approx(bits, rel=1e-9)


def test_an_upload_that_ends_behind_the_known_part_has_no_end_yet():
    course = course_of([0.0, 1.0, 2.0], [1e-12, 2e-12])
    assert np.isinf(course.end_s(LINK, 1e6, 1e12, 0.5))
    assert course.end_s(LINK, 1e6, 1.0, 2.0) > 2.0 or np.isinf(course.end_s(LINK, 1e6, 1.0, 2.0))


def test_what_lies_behind_the_end_changes_no_bit():
    """A run that is resumed knows other pieces behind its upload than one that was not stopped."""
    whole = course_of([0.0, 1.0, 2.0, 3.0], [1e-12, 3e-12, 2e-12])
    part = course_of([0.5, 1.0, 2.0], [1e-12, 3e-12])
    for bits in (1e5, 1e6, 3e6):
        ends_s = whole.end_s(LINK, 1e6, bits, 0.6), part.end_s(LINK, 1e6, bits, 0.6)
        assert ends_s[0] == ends_s[1]
        assert whole.bits(LINK, 1e6, 0.6, ends_s[0]) == part.bits(LINK, 1e6, 0.6, ends_s[0])


@given(st.integers(0, 2**32 - 1))
def test_what_is_planned_together_is_what_each_course_answers(seed):
    """To the last bit, of uploads that begin anywhere on their known parts and end there, or do not."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 8, 6)
    first = np.append(0, np.cumsum(counts))
    lengths_s, powers_w = rng.uniform(0.05, 0.5, first[-1]), 10.0 ** rng.uniform(-14, -11, first[-1])
    edges_s = [np.append(0.0, np.cumsum(lengths_s[begin:end])) for begin, end in pairwise(first)]
    powers = PowerPieces(
        np.concatenate([at[:-1] for at in edges_s]), powers_w, first, np.array([at[-1] for at in edges_s])
    )
    hz, bits = 10.0 ** rng.uniform(5, 7, 6), 10.0 ** rng.uniform(4, 7, 6)
    starts_s = rng.uniform(0.0, 0.9, 6) * powers.last_s
    stops_s = rng.uniform(0.0, 1.0, 6) * powers.last_s.max()
    for row, planned in enumerate(powers.plan(LINK, hz, bits, starts_s, stops_s)):
        stop_s = stops_s.item(row)
        course, of = Course(powers, row, 0, 0.0, math.inf), (hz.item(row), bits.item(row), starts_s.item(row))
        assert planned[:3] == (of[0], of[2], of[1])
        if not math.isnan(planned.end_s):
            assert planned.end_s == course.end_s(LINK, *of)
            assert planned.end_s == Course(powers, row, 0, 0.0, math.inf, planned).end_s(LINK, *of)
        if not math.isnan(planned.stop_bits):
            assert planned.stop_bits == course.bits(LINK, of[0], of[2], stop_s)
        pieces = edges_s[row].searchsorted(of[2], "right"), edges_s[row].searchsorted(stop_s)
        assert math.isnan(planned.stop_bits) == (pieces[0] >= min(pieces[1], counts[row]))
