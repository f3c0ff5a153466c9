import numpy as np

from edgesim.selection.best_norm import BestNorm
from edgesim.selection.view import Options


def test_the_largest_updates_come_first_and_every_candidate_is_asked(knowledge_of, view_of, schedule):
    knowledge = knowledge_of(np.ones((5, 2), dtype=int), norm=np.array([0.5, 2.0, 9.0, 1.0, 2.0]))
    view = view_of(knowledge, ids=[0, 1, 3, 4])
    assert schedule(BestNorm(Options(), 5, 2).choose(view), view)[1] == [1, 4, 3, 0]
    assert knowledge.asked == {"sent_norms": [0, 1, 3, 4]}
