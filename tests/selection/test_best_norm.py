import numpy as np
from candidates import PlainKnowledge, schedule, view_of

from edgesim.selection.best_norm import BestNorm, BestNormOptions

COUNTS = np.ones((5, 2), dtype=int)
NORMS = np.array([0.5, 2.0, 9.0, 1.0, 2.0])


def policy(**options):
    return BestNorm(BestNormOptions(**options), 5, 2)


def test_the_largest_updates_come_first_and_every_candidate_is_asked():
    knowledge = PlainKnowledge(COUNTS, norm=NORMS)
    view = view_of(knowledge, ids=[0, 1, 3, 4])
    assert schedule(policy().choose(view), view)[1] == [1, 4, 3, 0]
    assert knowledge.asked == {"sent_norms": [0, 1, 3, 4]}


def test_norms_may_be_those_of_what_was_trained():
    knowledge = PlainKnowledge(COUNTS, norm=NORMS)
    view = view_of(knowledge, ids=[0, 1, 3, 4])
    trained = policy(norm="trained")
    assert (trained.looks_at, policy().looks_at) == ({"update_norms"}, {"sent_norms"})
    assert schedule(trained.choose(view), view)[1] == [1, 4, 3, 0]
    assert knowledge.asked == {"update_norms": [0, 1, 3, 4]}


def test_they_may_be_compared_among_the_best_channels_alone():
    knowledge = PlainKnowledge(COUNTS, norm=NORMS)
    view = view_of(knowledge, gain=[5e-11, 1e-11, 1e-12, 4e-11, 3e-11])
    assert schedule(policy(norm="trained", channels=3).choose(view), view)[1] == [4, 3, 0]
    assert knowledge.asked == {"update_norms": [0, 3, 4]}


def test_what_would_be_sent_goes_by_an_equal_share_of_the_band_for_all_that_can_be_taken():
    knowledge = PlainKnowledge(COUNTS, per_bit=np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    rooms = {"room": np.array([100.0, 60.0, 30.0, 10.0])}
    view = view_of(knowledge, ids=[0, 1, 3, 4], places=2, estimates=rooms)
    # 100, 120, 120 and 50.
    assert schedule(policy().choose(view), view)[1] == [1, 3, 0, 4]
    assert view.estimates.asked == [2]
