import numpy as np
from candidates import PlainKnowledge, report_of, view_of

from edgesim.selection.availability_first import AvailabilityFirst
from edgesim.selection.view import Options


def test_the_most_present_come_first_and_ties_are_random():
    policy, knowledge = AvailabilityFirst(Options(), 8, 2), PlainKnowledge(np.ones((8, 2), dtype=int))
    for r, there in enumerate([[0, 1, 5], [1, 5, 6], [5]], start=1):
        policy.hear(report_of(r, there))
    orders = [next(policy.choose(view_of(knowledge, round=r))).tolist() for r in range(4, 12)]
    assert all(order[:2] == [5, 1] for order in orders)
    assert all(set(order[2:4]) == {0, 6} for order in orders)
    assert len({tuple(order[4:]) for order in orders}) > 4
