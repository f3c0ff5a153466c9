"""How long the policies take to decide on 1,000 candidates and 100 classes."""

import pytest

from edgesim.selection import make_selector


def decide(policy, view, places):
    """Offer until nobody is left, taking the first ``places`` devices; returns the number of offers."""
    choice = make_selector(policy, {}, len(view.ids), 100).choose(view)
    offers = 0
    try:
        next(choice)
        while True:
            offers += 1
            choice.send(offers <= places)
    except StopIteration:
        return offers


@pytest.mark.parametrize("places", [20, 1000], ids=["most-refused", "all-taken"])
@pytest.mark.parametrize("policy", ["fedteddi", "fed-cbs"])
def test_time_to_decide_on_a_thousand_candidates(benchmark, view, policy, places):
    offers = benchmark.pedantic(decide, args=(policy, view, places), rounds=3, warmup_rounds=1)
    assert offers == len(view.ids)
