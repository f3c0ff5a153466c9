"""Laws by listed mixes, each on a worked example."""

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.learning.drift.mixes import whole

A, B = [0.5, 0.5, 0.0, 0.0], [0.0, 0.1, 0.3, 0.6]
LISTED = {"labels": 4, "devices": 3, "size": 10}


def counts(drift, when):
    return drift.at(when).class_counts.tolist()


@pytest.mark.parametrize(
    ("mix", "size", "expected"),
    [
        ([0.7, 0.2, 0.1], 10, [7, 2, 1]),  # 0.7 + 0.2 is below 0.9 in floating point
        ([0.5, 0.5], 3, [2, 1]),
        ([0.26, 0.26, 0.48], 10, [3, 2, 5]),  # 2.6, 2.6, 4.8: two left over, the largest remainder first
        ([1 / 3, 1 / 3, 1 / 3], 4, [2, 1, 1]),
    ],
)
def test_mixes_become_whole_numbers_by_largest_remainders(mix, size, expected):
    assert whole(np.array([mix]), size).tolist() == [expected]


def test_swap_turns_mix_a_into_mix_b_at_its_instant(make_drift, at):
    drift = make_drift(law="swap", t_s=3.0, before=[A], after=[B], **LISTED)
    assert counts(drift, at(0.0)) == counts(drift, at(2.99)) == [[5, 5, 0, 0]] * 3
    assert counts(drift, at(3.0)) == counts(drift, at(50.0)) == [[0, 1, 3, 6]] * 3
    assert drift.at(at(2.0)).classes_seen.tolist() == [0, 1]
    assert drift.at(at(3.0)).classes_seen.tolist() == [0, 1, 2, 3]
    # A round that opens a rounding step before the swap is after it.
    t_s = float(np.cumsum(np.full(10, 0.3))[-1])
    assert t_s < 3.0
    assert counts(drift, at(t_s)) == [[0, 1, 3, 6]] * 3
    # Several mixes are those of the devices in turn.
    drift = make_drift(law="swap", t_s=3.0, before=[A, B], after=[B, A], **LISTED)
    assert counts(drift, at(0.0)) == [[5, 5, 0, 0], [0, 1, 3, 6], [5, 5, 0, 0]]
    assert counts(drift, at(4.0)) == [[0, 1, 3, 6], [5, 5, 0, 0], [0, 1, 3, 6]]


def test_gradual_moves_from_mix_a_to_mix_b_in_a_line(make_drift, at):
    """a = 0, 1/4, 1/2 and 1: (5, 5, 0, 0), (3.75, 4, 0.75, 1.5), (2.5, 3, 1.5, 3) and (0, 1, 3, 6)."""
    drift = make_drift(law="gradual", start_s=2.0, end_s=6.0, before=[A], after=[B], **LISTED)
    found = [counts(drift, at(t_s))[0] for t_s in (0.0, 2.0, 3.0, 4.0, 6.0, 9.0)]
    assert found == [[5, 5, 0, 0], [5, 5, 0, 0], [4, 4, 1, 1], [3, 3, 1, 3], [0, 1, 3, 6], [0, 1, 3, 6]]
    assert drift.at(at(2.0)).classes_seen.tolist() == [0, 1]
    assert drift.at(at(2.1)).classes_seen.tolist() == [0, 1, 2, 3]


def test_recurring_goes_through_its_mixes_again_and_again(make_drift, at):
    c = [0.0, 0.0, 0.0, 1.0]
    drift = make_drift(law="recurring", mixes=[[A], [B], [c]], durations_s=[2.0, 1.0, 3.0], **LISTED)
    expected = [[5, 5, 0, 0]] * 2 + [[0, 1, 3, 6]] + [[0, 0, 0, 10]] * 3
    assert [counts(drift, at(t_s + 0.5))[1] for t_s in range(12)] == expected * 2
    assert [counts(drift, at(float(t_s)))[1] for t_s in range(12)] == expected * 2
    seen = [drift.at(at(t_s)).classes_seen.tolist() for t_s in (0.5, 2.5, 6.5)]
    assert seen == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3]]


def test_a_cycle_shorter_than_two_rounds_warns(make_drift):
    listed = {"law": "recurring", "mixes": [[A], [B]], **LISTED}
    assert make_drift(durations_s=[1.0, 1.0], **listed).warning == ""
    assert "0.513 of its cycle" in make_drift(durations_s=[1.0, 0.95], **listed).warning


@pytest.mark.parametrize("pool", ["shared", "iid_partition"])
def test_devices_hold_what_their_class_counts_say_and_keep_what_the_mix_keeps(make_drift, at, pool):
    drift = make_drift(law="gradual", start_s=0.0, end_s=8.0, before=[A], after=[B], pool=pool, **LISTED)
    held = [drift.at(at(t_s)) for t_s in (0.0, 4.0, 8.0)]
    sets = []
    for one in held:
        for device in range(3):
            samples = one.samples_of(device)
            assert len(np.unique(samples)) == len(samples) == one.sizes[device] == 10
            assert np.bincount(samples % 4, minlength=4).tolist() == one.class_counts[device].tolist()
        found = one.at_places(np.array([2, 0]), np.array([[9, 0], [3, 3]]))
        assert found.tolist() == [one.samples_of(2)[[9, 0]].tolist(), one.samples_of(0)[[3, 3]].tolist()]
        sets.append([set(one.samples_of(device).tolist()) for device in range(3)])
    # From (5, 5, 0, 0) to (3, 3, 1, 3) six samples stay, and to (0, 1, 3, 6) one of them.
    assert [len(sets[0][n] & sets[1][n]) for n in range(3)] == [6] * 3
    assert [len(sets[0][n] & sets[2][n]) for n in range(3)] == [1] * 3
    assert sets[0][0] != sets[0][1]
    if pool == "iid_partition":
        assert not (sets[0][0] | sets[1][0] | sets[2][0]) & (sets[0][1] | sets[1][1] | sets[2][1])


SWAP = {"law": "swap", "t_s": 3.0, "before": [A], "after": [B]}
GRADUAL = {"law": "gradual", "start_s": 2.0, "end_s": 6.0, "before": [A], "after": [B]}
RECURRING = {"law": "recurring", "mixes": [[A], [B]], "durations_s": [1.0, 1.0]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (SWAP | {"after": [[0.5, 0.4, 0.0, 0.0]]}, r"the shares must add up to 1 \(got 0.9\)"),
        (SWAP | {"after": [[1.5, -0.5, 0.0, 0.0]]}, r"drift.after\[0\]\[0\]: input should be less than or equal to 1"),
        (SWAP | {"after": [[0.5, 0.5]]}, r"^drift.after: expected the shares of 4 classes \(got 2 numbers\)$"),
        (GRADUAL | {"end_s": 2.0}, r"end_s \(2\) must be above start_s \(2\)"),
        (RECURRING | {"durations_s": [1.0]}, r"durations_s: expected one for each of 2 mixes \(got 1\)"),
        (RECURRING | {"mixes": [[A], [[1.0]]]}, r"^drift.mixes\[1\]: expected the shares of 4 classes"),
        (
            SWAP | {"per_class": 5},
            r"^drift.pool: the pool of all devices has 5 samples of class 3, and 10 samples by the mixes of \[drift\] "
            r"need up to 6 of it$",
        ),
        (SWAP | {"speed": 2.0}, r"^drift.speed: is an option of law 'rotation', not of 'swap'"),
    ],
)
def test_what_cannot_be_dealt_is_refused_in_one_line(make_drift, given, message):
    with pytest.raises(EdgesimError, match=message):
        make_drift(**LISTED, **given)
