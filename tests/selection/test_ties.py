import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.selection.ties import by_falling, descending, first_lowest

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


@pytest.mark.parametrize("levels", [1, 2, 3, 50, 10**6])
@pytest.mark.parametrize("count", [0, 1, 5000, 9001])
def test_offering_the_first_thousand_ahead_changes_no_order(levels, count):
    random = np.random.default_rng(levels)
    blurred = 1 + random.integers(-4, 4, count) * 2.0**-52
    ids, values = 3 * np.arange(count), random.integers(0, levels, count) * blurred
    draws = random.random(3 * count)
    offers = list(by_falling(ids, values, lambda asked: draws[asked]))
    expected = ids[descending(values, then=draws[ids])]
    assert np.array_equal(np.concatenate([ids[:0], *offers]), expected)


def test_nobody_is_drawn_for_before_it_matters():
    values, asked = np.arange(10_000.0), []
    choice = by_falling(np.arange(10_000), values, lambda ids: asked.append(len(ids)) or np.zeros(len(ids)))
    assert next(choice)[:3].tolist() == [9999, 9998, 9997]
    assert sum(asked) < 3000
