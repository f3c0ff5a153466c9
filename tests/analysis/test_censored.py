"""Times to a target that some runs never reached."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgesim.analysis.censored import Outcomes, common_end, known


def outcomes(*times) -> Outcomes:
    """A time, or ``(last test,)`` of a run that never got there."""
    return Outcomes(
        np.array([np.nan if isinstance(one, tuple) else one for one in times]),
        np.array([one[0] if isinstance(one, tuple) else np.nan for one in times]),
    )


def test_times_are_restricted_to_the_shortest_test_of_those_that_never_got_there():
    first, second = outcomes(5.0, (40.0,), 61.0), outcomes(7.0, (30.0,), 20.0)
    assert common_end(first, second) == common_end(second, first) == 30.0
    assert first.until(30.0).tolist() == [5.0, 30.0, 30.0]
    assert second.until(30.0).tolist() == [7.0, 30.0, 20.0]
    assert math.isnan(common_end(known(np.array([1.0, 2.0])), known(np.array([3.0, 4.0]))))


@given(st.lists(st.tuples(st.floats(1, 60), st.floats(1, 60)), min_size=2, max_size=12))
def test_restricted_times_are_those_that_longer_tests_would_have_given(pairs):
    """A run is tested until its own end: whatever came later, min(t, tau) is known."""
    times, ends = (np.array(side) for side in zip(*pairs, strict=True))
    seen = Outcomes(np.where(times <= ends, times, np.nan), np.where(times <= ends, np.nan, ends))
    tau = common_end(seen, seen)
    if not math.isnan(tau):
        assert seen.until(tau).tolist() == np.minimum(times, tau).tolist()
