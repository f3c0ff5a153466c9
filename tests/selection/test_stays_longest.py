import numpy as np
from candidates import PlainKnowledge, view_of

from edgesim.selection.stays_longest import StaysLongest
from edgesim.selection.view import Options


def test_those_that_stay_longest_come_first_and_beyond_ten_deadlines_all_tie():
    knowledge = PlainKnowledge(np.ones((6, 2), dtype=int))
    leaves_s = {"leaves_cell": np.array([3.0, 19.0, 25.0, np.inf, 0.5, 21.0])}
    policy = StaysLongest(Options(), 6, 2)
    orders = [
        next(policy.choose(view_of(knowledge, round=r, tmax_s=2.0, estimates=leaves_s))).tolist() for r in range(1, 20)
    ]
    assert {tuple(order[3:]) for order in orders} == {(1, 0, 4)}
    # Six orders of three, in nineteen rounds.
    assert len({tuple(order[:3]) for order in orders}) >= 4
    assert all(sorted(order[:3]) == [2, 3, 5] for order in orders)
