import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.base.errors import EdgesimError
from edgesim.prediction import CheckInLog


def test_the_rate_is_the_sum_over_the_window_and_the_recursion_alike():
    """Oracle T3: eqs. 2 and 3 of FedDance, D = 0 before the log starts."""
    came, window = [1, 0, 1, 1, 0, 0, 1, 1, 0, 1], 4
    log, rates, recursion = CheckInLog.empty(1, window), [], [0.0]
    for r, there in enumerate(came):
        log.append(np.flatnonzero([there]))
        rates.append(log.rates(np.array([0]))[0])
        recursion.append(recursion[-1] + (there - (came[r - window] if r >= window else 0)) / window)
    assert rates == pytest.approx([0.25, 0.25, 0.5, 0.75, 0.5, 0.5, 0.5, 0.5, 0.5, 0.75])
    assert rates == pytest.approx(recursion[1:])


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=12), st.integers(1, 5))
def test_the_log_holds_the_last_rounds_in_order(rounds, window):
    log, ids = CheckInLog.empty(3, window), np.array([2, 0])
    for there in rounds:
        log.append(np.flatnonzero(there))
    padded = np.vstack([np.zeros((window, 3), dtype=bool), np.array(rounds, dtype=bool).reshape(-1, 3)])[-window:]
    assert (log.history(ids) == padded[:, ids]).all()
    assert (log.latest(ids) == padded[-1, ids]).all()
    assert log.rates(ids) == pytest.approx(padded[:, ids].mean(axis=0))


@pytest.mark.parametrize("ids", [[0, 3], [-1], [7, 1]])
@pytest.mark.parametrize("ask", ["append", "rates", "history", "latest"])
def test_an_unknown_device_is_refused_in_one_line(ids, ask):
    log = CheckInLog.empty(3, 4)
    with pytest.raises(EdgesimError, match=r"^availability predictor: unknown device (3|-1|7); known: 0 to 2$"):
        getattr(log, ask)(np.array(ids))
