"""Availability that changes at the edges of slots: the edges themselves, long stays and searches that are given up."""

from dataclasses import replace

import numpy as np
import pytest

import edgesim.traces.slots as module
from edgesim.streams import Streams
from edgesim.traces.models.always import Always
from edgesim.traces.models.bernoulli import Bernoulli
from edgesim.traces.models.markov import Markov
from edgesim.traces.models.solar import Solar
from edgesim.traces.search import Search
from edgesim.traces.slots import Slots

SLOT_S = 0.7


def bernoulli(probability: float = 0.6, devices: int = 20, slot_s: float = SLOT_S) -> Slots:
    made = Bernoulli(probability=probability, slot_s=slot_s).make(devices, Streams(11))
    assert isinstance(made, Slots)
    return made


@pytest.mark.parametrize("model", ["bernoulli", "markov", "solar"])
def test_the_end_of_a_stay_far_longer_than_any_look_ahead_is_the_same_alone_and_together(model):
    made = {
        "bernoulli": Bernoulli(probability=0.999, slot_s=1.0),
        "markov": Markov(join_probability=0.5, leave_probability=0.001, slot_s=1.0),
        "solar": Solar(day_s=1e6, slot_s=1.0),
    }[model].make(40, Streams(5))
    ids, when_s = np.arange(40), np.where(np.arange(40) % 2, 50_000.0, 0.25)
    together = made.available_until(ids, when_s, np.inf)
    assert together.tolist() == [made.available_until(ids[k : k + 1], when_s[k], np.inf)[0] for k in range(40)]
    for device in ids[(together > when_s) & np.isfinite(together)][:6]:
        slots = np.arange(int(when_s[device]), int(together[device]) + 1)
        there = made.available(np.full(len(slots), device), slots)
        assert there.tolist() == [True] * (len(slots) - 1) + [False]
    assert model == "solar" or (together - when_s).max() > 2000


def test_who_never_leaves_stays_without_end_and_nobody_looks_for_it():
    made = Bernoulli(probability=1.0, slot_s=1.0).make(3, Streams(0))
    assert made.available_until(np.arange(3), 7.5, np.inf).tolist() == [np.inf] * 3
    assert isinstance(made, Always)


def test_a_search_of_too_many_draws_is_given_up_and_says_how_far_it_went(monkeypatch):
    monkeypatch.setattr(module, "DRAW_LIMIT", 4000)
    model = replace(bernoulli(0.01), search=Search(1e5))
    assert model.search.given_up == ""
    assert model.next_time_with(20, 0.0) == np.inf
    # Blocks of 1, 2, 4, ... slots of 20 devices: 8 of them are the first with more than 4,000 draws.
    assert model.search.given_up == (
        "up to 178.5 s of the 1.157 days of availability.search_s, since the search took too many steps; raise "
        "availability.probability (0.01), or lower round.min_candidates"
    )


def test_devices_for_which_a_search_is_given_up_never_come_and_the_others_do(monkeypatch):
    ids, model = np.arange(20), replace(bernoulli(0.001), search=Search(1e5))
    true_s = model.next_available(ids, 0.0)
    monkeypatch.setattr(module, "DRAW_LIMIT", 10_000)
    found_s = model.next_available(ids, 0.0)
    given_up = np.isinf(found_s)
    assert 3 < given_up.sum() < 20
    assert found_s[~given_up].tolist() == true_s[~given_up].tolist()
    assert found_s[~given_up].max() < true_s[given_up].min()
    assert "too many steps; raise availability.probability" in model.search.given_up
    assert 10_000 < model.search.drawn < 40_000 + 20 * 16_000
