import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from candidates import PlainKnowledge, report_of, view_of
from hypothesis import given
from hypothesis import strategies as st

from edgesim.selection.oort import (
    Oort,
    OortOptions,
    exploit_count,
    exploit_pool,
    exploration_share,
    paced,
    preferred_duration_s,
    statistical_scores,
    time_factor,
    weighted,
)

UTILITIES = st.floats(0.01, 100)
DEVICES = st.lists(st.tuples(UTILITIES, st.floats(0.1, 200), st.integers(1, 20)), min_size=1, max_size=25)


@pytest.fixture
def knowledge():
    return PlainKnowledge(np.arange(1, 13)[:, None] * np.array([[10, 20]]))


def taken(policy, view, places):
    """The first ``places`` devices offered."""
    return [int(one) for offer in policy.choose(view) for one in offer][:places]


def test_the_worked_score():
    """Oracle T10: u = 30 between 10 and 40, last used in round 6 of 10; and the term for age alone."""
    assert statistical_scores(np.array([10.0, 30.0, 40.0]), np.array([6, 6, 6]), 10)[1] == pytest.approx(
        0.862677, abs=1e-6
    )
    alike = statistical_scores(np.array([10.0, 10.0]), np.array([6, 6]), 10)
    assert alike == pytest.approx(1 + 0.195899, abs=1e-6)


def test_a_device_twice_as_slow_as_preferred_counts_a_quarter():
    """Oracle T10."""
    assert time_factor(np.array([100.0, 50.0, 10.0]), 50.0, 2.0).tolist() == [0.25, 1.0, 1.0]
    assert time_factor(np.array([100.0, np.inf]), math.inf, 2.0).tolist() == [1.0, 1.0]


def test_exploration_decays_to_its_floor():
    """Oracle T10: epsilon after i decays, which round i + 1 uses."""
    shares = [exploration_share(i + 1, OortOptions()) for i in (0, 1, 10, 55, 500)]
    assert shares == pytest.approx([0.9, 0.882, 0.735366, 0.3, 0.3], abs=1e-6)


@pytest.mark.parametrize(
    ("places", "exploration", "tried", "count"),
    [(10, 0.9, 50, 1), (10, 0.3, 50, 7), (10, 0.3, 4, 4), (3, 0.9, 50, 0), (0, 0.3, 5, 0)],
)
def test_places_for_tried_devices(places, exploration, tried, count):
    assert exploit_count(places, exploration, tried) == count


@given(DEVICES, st.integers(1, 500), st.floats(1, 100), st.integers(0, 30), st.floats(0, 1))
def test_scores_and_pool_are_those_of_a_plain_loop(devices, round, percent, count, cut):
    """The published selector, one device at a time."""
    utilities, durations, ages = (list(column) for column in zip(*devices, strict=True))
    ranked = sorted(durations)
    preferred = ranked[min(int(len(ranked) * percent / 100), len(ranked) - 1)] if percent < 100 else math.inf
    by_utility = sorted(utilities)
    clip = by_utility[min(int(0.9 * len(by_utility)), len(by_utility) - 1)]
    lowest = by_utility[0] * 0.999
    scores = []
    for utility, duration, last in devices:
        score = (min(utility, clip) - lowest) / max(by_utility[-1] - lowest, 1e-4)
        score += math.sqrt(0.1 * math.log(round) / last)
        if duration > preferred:
            score *= (preferred / duration) ** 2
        scores.append(score)

    assert preferred_duration_s(np.array([np.nan, *durations]), percent) == preferred
    found = statistical_scores(np.array(utilities), np.array(ages), round)
    found = found * time_factor(np.array(durations), preferred, 2.0)
    assert found == pytest.approx(scores, rel=1e-12, abs=1e-15)

    count = min(count, len(scores))
    pool = exploit_pool(np.array(scores), count, cut)
    if count == 0:
        assert len(pool) == 0
    else:
        bar = cut * sorted(scores, reverse=True)[min(count, len(scores) - 1)]
        assert pool.tolist() == [row for row, score in enumerate(scores) if score >= bar]
        assert len(pool) >= count


def test_utilities_above_the_nineteenth_of_twenty_count_as_that():
    scores = statistical_scores(np.arange(1.0, 21.0), np.ones(20, dtype=np.int64), 1)
    assert scores[-3:] == pytest.approx((np.array([18.0, 19.0, 19.0]) - 0.999) / (20.0 - 0.999), rel=1e-12)


def test_exploited_devices_are_sampled_by_score_and_not_the_best_taken():
    """Two places, cut 0: pair (i, j) of the scores s has probability s_i / S * s_j / (S - s_i), in that order.

    Round 1 gives no term for age, and no device is slow, so the scores are (min(u, clip) - u_min) / (u_max - u_min)
    with u_min taken 0.1 % lower and the clip at the highest of four utilities: some 0, 1/3, 2/3 and 1.
    """
    utility = np.array([10.0, 20.0, 30.0, 40.0])
    scores = (utility - 9.99) / (40.0 - 9.99)
    options = OortOptions(exploration=0.0, exploration_min=0.0, cut=0.0)
    knowledge, seen, draws = PlainKnowledge(np.full((4, 2), 30)), Counter(), 300
    for seed in range(draws):
        policy = Oort(options, 4, 2)
        policy.state.utility[:], policy.state.last[:], policy.state.tried[:] = utility, 1, True
        policy.state.duration_s[:] = 0.5
        seen[tuple(taken(policy, view_of(knowledge, round=1, places=2, seed=seed), 2))] += 1
    for i, j in permutations(range(4), 2):
        exact = scores[i] / scores.sum() * scores[j] / (scores.sum() - scores[i])
        assert abs(seen[i, j] - draws * exact) < 4 * math.sqrt(draws * exact * (1 - exact)) + 1, (i, j)


def test_explored_devices_are_sampled_by_promise():
    """One place, two untried devices of 20 and 60 samples: the larger one has three chances of four."""
    knowledge, draws = PlainKnowledge(np.array([[10, 10], [30, 30]])), 200
    picks = Counter(
        taken(Oort(OortOptions(exploration=1.0), 2, 2), view_of(knowledge, places=1, seed=seed), 1)[0]
        for seed in range(draws)
    )
    assert abs(picks[1] - 0.75 * draws) < 4 * math.sqrt(draws * 0.75 * 0.25)


def test_a_device_without_weight_is_drawn_last():
    assert weighted(np.array([0.0, 1e-9]), np.array([1e-9, 50.0]), 2).tolist() == [1, 0]


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("before", "now", "percent", "after"),
    [(100, 109, 30, 35), (100, 111, 30, 30), (100, 599, 30, 30), (100, 600, 30, 25), (0, 50, 5, 5), (0, 0, 98, 100)],
)
def test_the_pacer_gives_time_when_nothing_changes_and_takes_it_when_much_does(before, now, percent, after):
    assert paced(percent, before, now, 5.0) == after


def test_the_pacer_compares_two_spans_of_rounds_of_exploited_devices(knowledge):
    """Against a list of all rounds' means, as the published code keeps them; round 0 is one without anybody."""
    options = OortOptions(pacer_step=4, exploration=0.0, exploration_min=0.0)
    policy, random = Oort(options, 12, 2), np.random.default_rng(3)
    means, percent = [0.0], 30.0
    moves = set()
    for r in range(1, 60):
        if r >= 8 and r % 4 == 0:
            before, now = sum(means[-8:-4]), sum(means[-4:])
            change = 5 * (abs(now - before) <= 0.1 * before) - 5 * (abs(now - before) >= 5 * before)
            moves.add(change)
            percent = min(100.0, max(5.0, percent + change))
        chosen = taken(policy, view_of(knowledge, round=r, places=4), 4)
        assert policy.state.pacer_percent == percent
        exploited = set(policy.state.exploited.tolist())
        heard = [m for m in chosen if random.random() < 0.8]
        # Quiet spells, and now and then a change of two orders of magnitude.
        losses = np.full(len(heard), 1.0 if r % 24 < 16 else 100.0)
        policy.hear(report_of(r, range(12), chosen, heard, loss_rms=losses))
        known = [policy.state.utility[m] for m in heard if m in exploited]
        means.append(sum(known) / len(known) if known else 0.0)
    assert moves == {-5, 0, 5}


def test_feedback_becomes_utility_duration_and_age(knowledge):
    """Also that of device 9, which was selected in an earlier round: its age counts from now."""
    policy = Oort(OortOptions(), 12, 2)
    taken(policy, view_of(knowledge, round=3, places=4), 4)
    feedback = {"loss_rms": [2.0, 3.0, 5.0], "duration_s": [0.7, 0.9, 1.4]}
    policy.hear(report_of(3, range(12), [1, 4, 7], heard=[1, 4, 9], **feedback))
    state, heard = policy.state, [1, 4, 7, 9]
    # Sizes are 30 (m + 1) samples, of which a job sees at most 80.
    assert state.utility[heard].tolist() == [60 * 2.0, 80 * 3.0, (120.0 + 240.0 + 400.0) / 3, 80 * 5.0]
    assert state.duration_s[heard].tolist() == [0.7, 0.9, 0.5, 1.4]
    assert state.last[heard].tolist() == [3, 3, 3, 3]
    assert np.flatnonzero(state.tried).tolist() == heard


def test_of_streams_that_the_deadline_ended_a_whole_one_would_take_longer(knowledge):
    """All uploads end with the round at 0.8 s: of one all was received, of another a quarter, of a third nothing.

    The second computed for 0.5 s; a quarter in 0.3 s makes a whole of 1.2 s, so 0.5 s + 1.2 s. Of the third, and of
    one that was planned with 2 s, is known that they would take the round at least; of one that left, nothing.
    """
    policy, planned_s = Oort(OortOptions(), 12, 2), np.full(12, 0.5)
    planned_s[9] = 2.0
    taken(policy, view_of(knowledge, round=1, places=4, estimates={"upload": planned_s}), 4)
    of_merged = {"duration_s": [0.8, 0.8], "upload_s": [0.4, 0.3], "loss_rms": [2.0, 3.0]}
    received = np.array([0.25, 0.0, 1.0, 0.0])
    policy.hear(report_of(1, range(12), [4, 7, 1, 9], heard=[1, 4], received=received, length_s=0.8, **of_merged))
    assert policy.state.duration_s[[1, 4, 7, 9]] == pytest.approx([0.8, 1.7, 0.8, 2.0])
    policy.hear(report_of(2, range(12), [5, 6], heard=[], received=np.array([0.0, np.nan]), length_s=0.8))
    assert policy.state.duration_s[[5, 6]].tolist() == [0.8, 0.5]


def test_slow_devices_are_explored_last(knowledge):
    """A hundredfold duration is 1e-4 of the weight: six fast devices fill two rounds of three places."""
    slow, counts = np.where(np.arange(12) % 2 == 0, 50.0, 0.5), Counter()
    for seed in range(40):
        policy = Oort(OortOptions(exploration=1.0, exploration_min=1.0), 12, 2)
        for r in (1, 2):
            chosen = taken(policy, view_of(knowledge, round=r, places=3, seed=seed, estimates={"upload": slow}), 3)
            counts.update(m % 2 for m in chosen)
            policy.hear(report_of(r, range(12), chosen, duration_s=slow[chosen]))
    assert counts[0] <= 2


def test_slow_devices_are_not_exploited(knowledge):
    slow = np.where(np.arange(12) % 2 == 0, 50.0, 0.5)
    policy = Oort(OortOptions(exploration=0.0, exploration_min=0.0), 12, 2)
    policy.hear(report_of(1, range(12), range(12), duration_s=slow, loss_rms=np.arange(1, 13)))
    for r in range(2, 30):
        chosen = taken(policy, view_of(knowledge, round=r, places=3), 3)
        assert all(m % 2 == 1 for m in chosen)
        assert policy.state.exploited.tolist() == chosen
