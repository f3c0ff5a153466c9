"""Times to a target that some runs never reached."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.duration.survfunc import survdiff

from edgesim.analysis.censored import Outcomes, known, log_rank_p, order, sign_test_p


def outcomes(*pairs) -> Outcomes:
    """A time, or ``(last test,)`` of a run that never got there."""
    return Outcomes(
        np.array([np.nan if isinstance(one, tuple) else one for one in pairs]),
        np.array([one[0] if isinstance(one, tuple) else np.nan for one in pairs]),
    )


def test_who_was_first_is_known_only_if_the_one_that_never_got_there_was_tested_late_enough():
    first = outcomes(5.0, 7.0, 6.0, 5.0, (60.0,), (60.0,), (4.0,), 61.0)
    second = outcomes(7.0, 5.0, 6.0, (60.0,), 5.0, (60.0,), 5.0, (60.0,))
    assert order(first, second).tolist() == [-1, 1, 0, -1, 1, 0, 0, 0]
    assert order(second, first).tolist() == [1, -1, 0, 1, -1, 0, 0, 0]


@given(st.lists(st.integers(-1, 1), max_size=14))
def test_the_sign_test_is_scipys_binomial_test_of_the_pairs_that_have_an_order(signs):
    below, above = signs.count(-1), signs.count(1)
    expected = stats.binomtest(above, below + above).pvalue if below + above else 1.0
    assert sign_test_p(np.array(signs, dtype=np.int64)) == pytest.approx(expected, rel=1e-12)


def test_of_five_seeds_the_sign_test_cannot_go_below_a_sixteenth():
    assert sign_test_p(np.full(5, -1)) == pytest.approx(0.0625)


TIMES = st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=2, max_size=12)


@settings(max_examples=40, deadline=None)
@given(TIMES, TIMES)
def test_the_log_rank_test_is_that_of_statsmodels_with_the_runs_that_never_got_there_censored(one, other):
    sides = [outcomes(*(float(t) if there else (float(t),) for t, there in side)) for side in (one, other)]
    times, status = np.array([t for t, _ in one + other]), np.array([there for _, there in one + other]).astype(int)
    with np.errstate(all="ignore"):
        try:
            expected = survdiff(times, status, np.repeat([0, 1], [len(one), len(other)]))[1]
        except np.linalg.LinAlgError:
            expected = np.nan
    assert log_rank_p(*sides) == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_of_runs_none_of_which_got_there_the_log_rank_test_says_nothing():
    assert math.isnan(log_rank_p(outcomes((5.0,), (6.0,)), outcomes((5.0,), (7.0,))))


def test_a_log_rank_by_hand():
    """Freireich's remission times (1963) in weeks: 6-MP against placebo, chi-square 16.79."""
    drug = outcomes(6.0, 6.0, 6.0, 7.0, 10.0, 13.0, 16.0, 22.0, 23.0, (6.0,), (9.0,), (10.0,), (11.0,), (17.0,),
                    (19.0,), (20.0,), (25.0,), (32.0,), (32.0,), (34.0,), (35.0,))  # fmt: skip
    placebo = known(np.array([1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23], dtype=float))
    assert stats.chi2.isf(log_rank_p(drug, placebo), 1) == pytest.approx(16.79, abs=0.005)
