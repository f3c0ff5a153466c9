"""Counts as text in the titles of tables."""

import pandas as pd
import pytest

from edgesim.tables.table_text import span


@pytest.mark.parametrize(("counts", "text"), [([1], "1 seed"), ([5, 5], "5 seeds"), ([1, 5], "1 to 5 seeds")])
def test_the_noun_of_a_count_is_in_its_number(counts, text):
    assert span(pd.Series(counts), "seeds") == text
