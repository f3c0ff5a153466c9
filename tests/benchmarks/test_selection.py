"""How long the policies take to decide on 1,000 candidates and 100 classes, built in and by a dotted path."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sizes import IS_LEAST, least_cpu_s, size

from edgesim.engine.decision import admit
from edgesim.selection import best_channel, make_selector

MOST = 1.05
"""Aim: times the decisions of the same policy built in that those of a plug-in take."""
DECISIONS, TURNS = size((300, 15), (3, 1))


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


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """The dotted path of a copy of best-channel."""
    (tmp_path / "copied_policy.py").write_text(Path(best_channel.__file__).read_text())
    monkeypatch.syspath_prepend(tmp_path)
    yield "copied_policy.BestChannel"
    sys.modules.pop("copied_policy", None)


def test_decisions_through_a_plug_in_take_as_long_as_built_in(view, copied):
    """The sequence of decisions is the same."""
    station, bands_hz, taken = np.zeros(len(view.ids), dtype=np.int64), np.array([50.0]), {}

    def decisions(name, selector):
        for _ in range(DECISIONS):
            taken[name] = admit(name, selector.choose(view), view, station, bands_hz, None)

    selectors = {name: make_selector(name, {}, len(view.ids), 0) for name in ("best-channel", copied)}
    least = least_cpu_s({name: partial(decisions, name, of) for name, of in selectors.items()}, TURNS)
    assert taken["best-channel"].tolist() == taken[copied].tolist()
    ratio = least[copied] / least["best-channel"]
    print(f"{1e6 * least['best-channel'] / DECISIONS:.1f} us a decision, plug-in {ratio:.3f} times that")
    assert IS_LEAST or ratio <= MOST
