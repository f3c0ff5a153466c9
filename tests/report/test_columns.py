"""Columns come out of a page as they went in."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.base.errors import EdgesimError
from edgesim.report.columns import apart, exact, script_json, small, whole

WHOLE = st.lists(st.integers(-(2**31) + 1, 2**31 - 1))


@given(WHOLE)
def test_integers_survive(decoded, values):
    assert decoded(whole(values)).tolist() == values
    assert decoded(apart(values)).tolist() == values


@given(st.lists(st.floats(allow_infinity=False)))
def test_numbers_survive_with_all_their_bits(decoded, values):
    assert decoded(exact(values)).tobytes() == np.array(values, dtype="<f8").tobytes()


@given(st.lists(st.integers(0, 255)))
def test_small_integers_survive(decoded, values):
    assert decoded(small(values)).tolist() == values


def test_an_integer_beyond_32_bits_is_refused():
    with pytest.raises(EdgesimError, match="2147483648; expected numbers below"):
        whole([1, 2**31])


@given(st.text())
def test_no_text_ends_the_script_that_holds_it(text):
    written = script_json({text: text})
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {text: text}


def test_alike_neighbours_take_little_room():
    assert len(whole(np.repeat(np.arange(1_000), 100))["data"]) < 2_000
