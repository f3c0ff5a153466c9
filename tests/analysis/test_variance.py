"""Analysis of variance beside AFL's specification, SciPy and sums by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edgesim.analysis.variance import analyse

ACCURACY = {
    ("fedavg", "none"): (91, 91.4, 91.1),
    ("fedavg", "some"): (86.3, 86.9, 86.2),
    ("fedavg", "high"): (79.5, 79, 79.9),
    ("afl", "none"): (91.7, 92, 91.6),
    ("afl", "some"): (88.7, 88.9, 88.4),
    ("afl", "high"): (84.9, 84.5, 84.8),
}
RUNS = pd.DataFrame(
    [{"policy": policy, "skew": skew, "value": value} for (policy, skew), of in ACCURACY.items() for value in of]
)


def test_the_two_way_analysis_of_the_afl_page_has_its_numbers_to_1e_9():
    """AFL's specification, T13."""
    table = analyse(RUNS, ["policy", "skew"]).set_index("source")
    assert table["f"].tolist()[:3] == pytest.approx([361.5061728395, 1475.8765432098, 93.7283950617], abs=1e-9)
    assert table["df"].tolist() == [1, 2, 2, 12]
    assert table.loc["residual", "sum_sq"] == pytest.approx(1.08, abs=1e-9)
    assert list(table.index) == ["policy", "skew", "policy x skew", "residual"]
    assert table["share"].sum() == pytest.approx(1)


def test_the_one_way_analysis_of_the_afl_page_has_its_number_to_1e_9():
    table = analyse(RUNS[RUNS["policy"] == "fedavg"], ["skew"]).set_index("source")
    assert table.loc["skew", "f"] == pytest.approx(799.9230769231, abs=1e-9)
    assert table.loc["skew", "p"] == pytest.approx(stats.f_oneway(*list(ACCURACY.values())[:3]).pvalue, rel=1e-9)


GROUP = st.lists(st.floats(-10, 10, width=16), min_size=2, max_size=5)


@settings(max_examples=30, deadline=None)
@given(st.lists(GROUP, min_size=2, max_size=4))
def test_one_way_f_and_p_are_scipys_for_groups_of_any_size(groups):
    # Of equal means SciPy makes an F of rounding errors, which may be negative and has no p.
    if sum(np.var(group) for group in groups) < 1e-2 or np.ptp([np.mean(group) for group in groups]) < 1e-3:
        return
    values = pd.DataFrame([{"group": i, "value": value} for i, group in enumerate(groups) for value in group])
    row = analyse(values, ["group"]).iloc[0]
    expected = stats.f_oneway(*groups)
    assert (row["f"], row["p"]) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-6, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 3), st.integers(2, 3), st.integers(2, 4), st.integers(0, 2**32))
def test_two_way_squares_are_those_of_the_textbook_for_equal_cells(rows, columns, runs, seed):
    x = np.random.default_rng(seed).normal(0, 3, (rows, columns, runs)) + np.arange(columns)[:, None]
    values = pd.DataFrame([{"a": i, "b": j, "value": x[i, j, k]} for i, j, k in np.ndindex(x.shape)])
    grand, a, b, cell = x.mean(), x.mean((1, 2)), x.mean((0, 2)), x.mean(2)
    squares = [
        columns * runs * ((a - grand) ** 2).sum(),
        rows * runs * ((b - grand) ** 2).sum(),
        runs * ((cell - a[:, None] - b + grand) ** 2).sum(),
        ((x - cell[..., None]) ** 2).sum(),
    ]
    assert analyse(values, ["a", "b"])["sum_sq"].tolist() == pytest.approx(squares, rel=1e-6, abs=1e-9)
