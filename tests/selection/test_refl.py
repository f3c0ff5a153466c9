import numpy as np
import pytest
from candidates import PlainKnowledge, report_of, view_of
from hypothesis import given
from hypothesis import strategies as st

from edgesim.selection.refl import Refl, ReflOptions, is_leaving
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals


def offered(policy, view):
    return [int(one) for offer in policy.choose(view) for one in offer]


@pytest.fixture
def knowledge():
    return PlainKnowledge(np.full((20, 2), 30))


def test_priority_is_for_those_who_stay_this_slot_but_not_the_next():
    """Oracle T11: slots of 100 s, now is 0."""
    assert is_leaving(np.array([50.0, 100, 150, 200, 250]), 100.0).tolist() == [False, True, True, False, False]


@given(st.lists(st.integers(1, 9), min_size=2, max_size=8), st.integers(0, 30), st.integers(1, 6))
def test_priority_on_a_trace_is_that_of_a_plain_loop_over_periods(lengths, now, slot):
    """The published code: the whole slot, or the whole next slot, lies within one period."""
    edges = np.cumsum(lengths[: len(lengths) // 2 * 2]).astype(float)
    periods = list(zip(edges[::2], edges[1::2], strict=True))
    rows = np.zeros(len(periods), dtype=np.int64)
    table = IntervalTable(Intervals(rows, edges[::2], edges[1::2], np.array([np.inf])), "absent")

    def covered(first, last):
        return any(start <= first and end >= last for start, end in periods)

    expected = covered(now, now + slot) and not covered(now + slot, now + 2 * slot)
    leaves_s = table.available_until(np.array([0]), float(now), float(now + 2 * slot)) - now
    assert bool(is_leaving(leaves_s, float(slot))[0]) == expected


def test_the_slot_can_follow_the_lengths_of_the_rounds(knowledge):
    """asynchronous.md: from 1000 s, rounds of 80 and 120 s make 310 and 167.5 s; by default it stays at the deadline.

    Devices leave after 200 s or 400 s. In slots of 1000 s nobody stays for one, in slots of 310 s those of 400 s stay
    for one and not for two, in slots of 167.5 s those of 200 s (400 s are two slots and more).
    """
    leaves = np.array([200.0, 400.0] * 10)
    for options, kinds in (({"window": "rounds"}, [{0, 1}, {1}, {0}]), ({}, [{0, 1}] * 3)):
        policy = Refl(ReflOptions(oracle_accuracy=1.0, cool_down=0, **options), 20, 2)
        for r, (kind, length_s) in enumerate(zip(kinds, [80.0, 120.0, 0.0], strict=True), start=1):
            view = view_of(knowledge, round=r, places=8, tmax_s=1000.0, estimates={"leaves": leaves})
            assert {m % 2 for m in offered(policy, view)[:8]} == kind
            policy.hear(report_of(r, range(20), [], length_s=length_s))


def test_a_device_rests_for_five_rounds(knowledge):
    policy = Refl(ReflOptions(), 20, 2)
    rounds = []
    for r in range(1, 15):
        there = offered(policy, view_of(knowledge, round=r))
        if 3 in there:
            rounds.append(r)
            policy.hear(report_of(r, range(20), [3], heard=[]))
        else:
            policy.hear(report_of(r, range(20)))
    assert rounds == [1, 7, 13]


@pytest.mark.parametrize("state", range(30))
def test_a_choice_is_that_of_a_plain_loop_on_random_states(state, knowledge):
    """Rest, priorities and the nine tenths of each that the oracle speaks of, device by device."""
    random = np.random.default_rng(state)
    rested_after, accuracy, number = int(random.integers(0, 7)), float(random.choice([0.5, 0.9, 1.0])), 20
    ids = np.sort(random.choice(20, random.integers(1, 21), replace=False))
    policy = Refl(ReflOptions(cool_down=rested_after, oracle_accuracy=accuracy), 20, 2)
    policy.state.last = random.integers(number - 9, number, 20)
    # In slots, which are as long as the deadline: some end with one.
    leaves = np.where(
        random.random(len(ids)) < 0.2, random.integers(0, 4, len(ids)), random.uniform(0.0, 3.0, len(ids))
    )
    places, slot_s = int(random.integers(1, 15)), float(random.choice([0.5, 1.0, 100.0]))
    view = view_of(
        knowledge, ids, round=number, seed=state, places=places, tmax_s=slot_s, estimates={"leaves": slot_s * leaves}
    )

    lots = {m: float(view.streams.uniform("selection/refl", m, number)) for m in ids.tolist()}
    leaving, staying = [], []
    for m, left_s in sorted(zip(ids.tolist(), leaves.tolist(), strict=True), key=lambda pair: lots[pair[0]]):
        if number - policy.state.last[m] > rested_after:
            (leaving if 1.0 <= left_s < 2.0 else staying).append(m)
    if len(leaving) + len(staying) > min(places, len(ids)):
        expected = [*leaving[: int(accuracy * len(leaving) + 1e-9)], *staying[: int(accuracy * len(staying) + 1e-9)]]
    else:
        expected = sorted([*leaving, *staying], key=lots.get)
    assert offered(policy, view) == expected


def test_by_the_log_the_least_present_come_first(knowledge):
    policy = Refl(ReflOptions(forecast="log", cool_down=0), 20, 2)
    for r in range(1, 6):
        policy.hear(report_of(r, [m for m in range(20) if m % 5 >= r - 1]))
    order = offered(policy, view_of(knowledge, round=6))
    availability = [m % 5 for m in order]
    assert availability == sorted(availability)
    assert order[:4] != sorted(order[:4]) or offered(policy, view_of(knowledge, round=7))[:4] != order[:4]
