import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgesim.selection.column import Column

rows_asked = st.lists(st.integers(0, 19), max_size=30)


def counted(length=20):
    """A column of squares, and the rows that were worked out, in turn."""
    asked = []

    def squares(rows):
        asked.extend(rows.tolist())
        return rows.astype(float) ** 2

    return Column(length, squares), asked


@given(st.lists(rows_asked, max_size=5))
def test_rows_have_their_values_whatever_was_asked_before_and_are_worked_out_once(questions):
    column, asked = counted()
    for rows in questions:
        rows = list(dict.fromkeys(rows))
        np.testing.assert_array_equal(column[np.array(rows, dtype=np.int64)], np.array(rows, dtype=float) ** 2)
    assert len(asked) == len(set(asked))


def test_one_row_a_mask_and_all_of_them():
    column, asked = counted()
    assert column[3] == 9.0
    np.testing.assert_array_equal(column[np.arange(20) > 17], [18.0**2, 19.0**2])
    assert asked == [3, 18, 19]
    np.testing.assert_array_equal(np.asarray(column), np.arange(20.0) ** 2)
    assert column[-1] == 19.0**2
    assert len(asked) == 3 + 20


def test_what_is_changed_of_an_answer_stays_out_of_the_column():
    column, _ = counted()
    for _ in range(2):
        answer = column[np.array([1, 2])]
        assert answer.tolist() == [1.0, 4.0]
        answer[:] = 0
