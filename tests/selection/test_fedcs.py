import numpy as np
from candidates import PlainKnowledge, offers, view_of
from hypothesis import given
from hypothesis import strategies as st

from edgesim.selection.fedcs import FedCs, FedCsOptions

TIMES = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), min_size=1, max_size=9)


def sequential(computes, uploads, deadline):
    count = len(computes)
    estimates = {"ready": np.array(computes, float), "upload": np.array(uploads, float), "due": deadline}
    view = view_of(PlainKnowledge(np.ones((count, 1), dtype=int)), estimates=estimates)
    return FedCs(FedCsOptions(), count, 1).choose(view)


def test_the_worked_round():
    """a (2, 3), b (5, 1), c (1, 4), 9 s: a by the tie, then b; c would end at 10."""
    choice = sequential([2, 5, 1], [3, 1, 4], 9.0)
    assert offers(choice, lambda device, taken: True) == ([0, 1], [0, 1])


@given(TIMES, st.integers(1, 40), st.sets(st.integers(0, 8)))
def test_the_order_is_that_of_the_algorithm_as_printed(times, deadline, refused):
    """Algorithm 3 takes the least increment among all who remain and discards it where it ends too late."""
    theta, left, offered, taken = 0.0, set(range(len(times))), [], []
    while left:
        increments = {k: times[k][1] + max(0.0, times[k][0] - theta) for k in left}
        best = min(left, key=lambda k: (increments[k], k))
        left.remove(best)
        if theta + increments[best] < deadline:
            offered.append(best)
            if best not in refused:
                taken.append(best)
                theta += increments[best]
    computes, uploads = zip(*times, strict=True)
    choice = sequential(computes, uploads, float(deadline))
    assert offers(choice, lambda device, _: device not in refused) == (offered, taken)


def test_in_parallel_the_order_is_by_the_finish_at_an_equal_share():
    # Device 4 would be late even alone.
    estimates = {
        "ready": np.array([2.0, 5.0, 1.0, 1.0, 0.5]),
        "upload": np.array([3.0, 1.0, 4.0, 1.0, 9.0]),
        "due": 9.0,
    }
    view = view_of(PlainKnowledge(np.ones((5, 1), dtype=int)), places=3, estimates=estimates)
    assert next(FedCs(FedCsOptions(uploads="parallel"), 5, 1).choose(view)).tolist() == [3, 0, 2, 1]
    assert view.estimates.asked == [1, 3]
