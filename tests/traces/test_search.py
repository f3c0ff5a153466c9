"""Searches for the next available device: over nights and long absences, and limited in simulated time."""

import numpy as np
import pytest

import edgesim.traces.search as module
from edgesim.base.errors import EdgesimError
from edgesim.config import YEAR_S, AvailabilityConfig
from edgesim.streams import Streams
from edgesim.traces.chains import Chains
from edgesim.traces.models import make_availability
from edgesim.traces.models.solar import Solar
from edgesim.traces.search import Search, span
from edgesim.traces.slots import Slots


class Counted(Streams):
    """Streams that count the draws of availability in slots."""

    drawn = 0

    def uniform(self, name, devices, round=0, count=None, first_pair=0):
        if name == "availability":
            self.drawn += np.broadcast(devices, round).size
        return super().uniform(name, devices, round, count, first_pair)


def forward(join: float, leave: float, seed: int, slots: int) -> list[bool]:
    """One chain from its first slot on, one slot after another, as the law of the draws says."""
    draws = Streams(seed).uniform("availability", 3, np.arange(slots), count=2)
    there = bool(draws[0, 1] < join / (join + leave))
    states = [there]
    for forgets, draw in draws[1:]:
        if join + leave <= 1:
            there = bool(draw < join / (join + leave)) if forgets < join + leave else there
        else:
            rest = 2 - join - leave
            there = bool(draw < (1 - leave) / rest) if forgets < rest else not there
        states.append(there)
    return states


@pytest.mark.parametrize(
    ("join", "leave"), [(0.2, 0.2), (0.01, 0.02), (0.9, 0.8), (0.99, 0.98), (0.5, 0.5), (0.001, 5e-4)]
)
def test_a_chain_is_the_same_forward_backward_in_blocks_and_from_what_is_remembered(join, leave):
    truth = np.array(forward(join, leave, 5, 3000))
    chains, rng = Chains(np.full(4, join), np.full(4, leave), Streams(5)), np.random.default_rng(2)
    assert 0 < truth.mean() < 1
    for _ in range(80):
        slots = rng.integers(0, rng.choice([3, 60, 3000]), rng.integers(1, 40))
        assert chains(np.full(len(slots), 3), slots).tolist() == truth[slots].tolist()
        block = np.arange(first := rng.integers(0, 2900), first + 100)
        assert chains(np.tile([1, 3], 100), np.repeat(block, 2))[1::2].tolist() == truth[block].tolist()


def test_to_follow_a_chain_that_hardly_ever_changes_takes_a_draw_for_each_slot():
    streams = Counted(1)
    chains = Chains(np.full(3, 1e-5), np.full(3, 1e-5), streams)
    for slot in range(2000):
        chains(np.arange(3), np.full(3, slot))
    assert streams.drawn < 3 * 2 * 2000


@pytest.mark.slow
def test_the_state_of_a_chain_that_never_forgets_is_refused_in_one_line():
    chains = Chains(np.full(1, 1e-300), np.full(1, 1e-300), Streams(1))
    with pytest.raises(EdgesimError, match="goes back over more slots than can be looked at; raise join_probability"):
        chains(np.array([0]), np.array([10**15]))


@pytest.mark.parametrize("slot_s", [1000.0, 1.0, 0.001])
def test_a_search_through_a_night_of_years_takes_as_many_draws_however_short_the_slots_are(slot_s):
    streams, day_s = Counted(4), 8 * YEAR_S
    made = Solar(day_s=day_s, slot_s=slot_s).make(1, streams)
    phase = float(streams.uniform("availability-phase", np.array([0]))[0])
    dusk_s, dawn_s = (phase + 0.2501) * day_s, (phase + 0.75) * day_s
    for ask in (lambda: made.next_available(np.array([0]), dusk_s)[0], lambda: made.next_time_with(1, dusk_s)):
        streams.drawn = 0
        # By dawn the chance rises from nothing, as the cosine: within a thousandth of the day somebody was there.
        assert dawn_s < ask() < dawn_s + max(1e-3 * day_s, 5 * slot_s)
        assert streams.drawn < 10**6
    assert made.empty_slots(dusk_s, dusk_s + 0.3 * day_s) == int(made._slot(dusk_s + 0.3 * day_s) - made._slot(dusk_s))


RARE = {"model": "bernoulli", "probability": 1e-4, "slot_s": 10.0}


def test_nobody_comes_any_more_behind_the_limit_and_just_before_it_somebody_does():
    config = AvailabilityConfig.model_validate({**RARE, "search_s": 1e7})
    ids = np.arange(3)
    back_s = make_availability(config, 3, Streams(8)).next_available(ids, 5.0)
    together_s = float(back_s.min())
    assert 5.0 < together_s < np.sort(back_s)[1] < 1e7
    for search_s, comes in ((together_s, True), (together_s - 20.0, False)):
        made = make_availability(config.model_copy(update={"search_s": search_s}), 3, Streams(8))
        assert made.next_available(ids, 5.0).tolist() == [
            t_s if comes and t_s == together_s else np.inf for t_s in back_s.tolist()
        ]
        assert made.next_time_with(1, 5.0) == (together_s if comes else np.inf)


def test_thirty_years_are_searched_unless_the_config_says_otherwise():
    assert AvailabilityConfig().searched_s == Search().limit_s == 30 * 365.25 * 86_400
    assert AvailabilityConfig(search_s=5.0).searched_s == 5.0
    assert "search_s" not in AvailabilityConfig().model_dump(exclude_none=True)


def test_a_search_that_takes_long_is_told_and_a_short_one_is_not(monkeypatch):
    told: list[str] = []
    made = make_availability(AvailabilityConfig.model_validate(RARE), 3, Streams(8), search=Search(report=told.append))
    assert isinstance(made, Slots)
    made.next_time_with(1, 0.0)
    assert told == []
    monkeypatch.setattr(module, "_SECONDS_BEFORE_MESSAGES", 0.0)
    made.next_time_with(1, 0.0)
    assert told[0] == "looking for 1 devices available, at 0 s"
    assert len(told) < 40
    told.clear()
    made.next_available(np.arange(3), 0.0)
    assert told[-1].startswith("looking for a device available, at ")
    told.clear()
    made.available_until(np.arange(3), made.next_available(np.arange(3), 0.0))
    assert told[-1].startswith("looking for the end of a stay, at ")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(3.17e-6, "3.17e-06 s"), (59.5, "59.5 s"), (7200.0, "2 hours"), (86_400.0, "1 days"), (30 * YEAR_S, "30 years")],
)
def test_a_length_of_time_is_told_in_the_largest_unit_that_it_has(seconds, said):
    assert span(seconds) == said


@pytest.mark.parametrize(
    "model",
    [
        RARE,
        {"model": "markov", "join_probability": 1e-4, "slot_s": 10.0},
        {"model": "solar", "peak": 1e-4, "slot_s": 10.0},
    ],
)
def test_a_search_goes_no_further_than_the_end_of_the_run(model):
    config, ids = AvailabilityConfig.model_validate(model), np.arange(3)
    whole = make_availability(config, 3, Streams(8))
    back_s, one_s = whole.next_available(ids, 5.0), whole.next_time_with(1, 5.0)
    assert 5.0 < back_s.min() == one_s < np.sort(back_s)[1]
    for until_s in (one_s, one_s - 1e-3, float(np.sort(back_s)[1]), 6.0, 1e6):
        streams = Counted(8)
        made = make_availability(config, 3, streams, search=Search(until_s=until_s))
        answers_s = made.next_available(ids, 5.0)
        assert np.where(answers_s > until_s, np.inf, answers_s).tolist() == [
            t_s if t_s <= until_s else np.inf for t_s in back_s.tolist()
        ]
        assert np.isfinite(answers_s).all()
        assert (made.next_time_with(1, 5.0) == one_s) == (one_s <= until_s)
        assert until_s < made.next_time_with(3, 5.0) < np.inf
        assert streams.drawn < 200 + 40 * until_s / 10.0
