import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgesim.selection.ties import descending, first_lowest

magnitudes = st.integers(0, 6).map(lambda level: 10.0 ** (level - 12))


@given(st.lists(magnitudes, max_size=12), st.data())
def test_values_a_few_last_bits_apart_keep_the_order_of_their_rows(values, data):
    bits = data.draw(st.lists(st.integers(-4, 4), min_size=len(values), max_size=len(values)))
    blurred = np.array(values) * (1 + np.array(bits) * 2.0**-52)
    expected = sorted(range(len(values)), key=lambda row: (-values[row], row))
    assert descending(blurred).tolist() == expected


@given(st.lists(st.integers(-5, 5), max_size=12))
def test_tied_rows_follow_the_second_key_when_there_is_one(values):
    then = np.array([(7 * row) % 13 for row in range(len(values))], dtype=float)
    expected = sorted(range(len(values)), key=lambda row: (-values[row], then[row]))
    assert descending(np.array(values, dtype=float), then=then).tolist() == expected


def test_a_relative_difference_of_1e_11_is_no_tie_however_small_the_values():
    assert descending(np.array([1e-13, 1e-13 * (1 + 1e-11)])).tolist() == [1, 0]


def test_the_lowest_value_wins_unless_an_earlier_row_ties_on_the_given_scale():
    values = np.array([3.0, 1e-13, -2e-13, 0.5])
    assert first_lowest(values, scale=1.0) == 1
    assert first_lowest(values, scale=0.1) == 2
