import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import in_one_line
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from edgesim.prediction import PREDICTORS, CheckInLog, Confusion, backtest, make_predictor


@given(arrays(bool, 12), arrays(bool, 12))
def test_scores_are_those_of_scikit_learn(said, came):
    confusion = Confusion.of(said, came)
    assert confusion.accuracy == pytest.approx(accuracy_score(came, said))
    for mine, theirs in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
        value = theirs(came, said, zero_division=np.nan)
        assert getattr(confusion, mine) == pytest.approx(value, nan_ok=True), mine


@given(arrays(bool, (3, 7)), arrays(bool, (3, 7)))
def test_confusions_add_up(said, came):
    one, two, three = (Confusion.of(*pair) for pair in zip(said, came, strict=True))
    assert one + two + three == Confusion.of(said.ravel(), came.ravel())


def test_nothing_judged_has_no_scores():
    nothing = Confusion.of(np.empty(0, dtype=bool), np.empty(0, dtype=bool))
    assert np.isnan([nothing.accuracy, nothing.precision, nothing.recall, nothing.f1]).all()


@given(arrays(bool, (11, 4)), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))
def test_poisson_is_judged_as_a_plain_loop_judges_it(present, history, future, every):
    judged, right = [], 0
    for r in range(history, 11 - future + 1, every):
        judged.append(r)
        for m in range(4):
            rate = sum(present[r - history : r, m]) / history
            said = 1 - np.exp(-rate * future) > 0.5
            right += said == any(present[r : r + future, m])
    result = backtest(present, make_predictor("poisson"), history, future, every)
    assert result.rounds == judged
    assert len(result.wall_s) == len(judged)
    assert result.overall.accuracy == pytest.approx(right / (4 * len(judged)))


def test_a_forecast_knows_nothing_of_the_rounds_it_is_about():
    present = np.zeros((6, 2), dtype=bool)
    seen = []

    def predictor(log, ids, future_rounds):
        seen.append(log.history(ids)[:, 0].tolist())
        return np.zeros(len(ids))

    present[3, 0] = True
    backtest(present, predictor, 2, 2)
    assert seen == [[False, False], [False, False], [False, True]]


@pytest.mark.parametrize(
    ("history", "future", "every", "says"),
    [
        (8, 3, 1, "a history of 8 and a future of 3 rounds do not fit into a log of 10"),
        (0, 3, 1, "history_rounds must be at least 1 (got 0)"),
        (3, -1, 1, "future_rounds must be at least 1 (got -1)"),
        (3, 3, 0, "every must be at least 1 (got 0)"),
    ],
)
def test_windows_that_do_not_fit_the_log_are_refused_in_one_line(history, future, every, says):
    with in_one_line(re.escape(says)):
        backtest(np.ones((10, 2), dtype=bool), make_predictor("poisson"), history, future, every)


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_forecast_of_no_rounds_is_refused(name):
    with in_one_line(r"future_rounds must be at least 1 \(got -3\)"):
        make_predictor(name)(CheckInLog.empty(2, 5), np.arange(2), -3)
