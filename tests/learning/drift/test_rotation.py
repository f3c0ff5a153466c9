"""FedStg's rotation against the numbers of its page: chances (T3), classes drawn (T1b), pools."""

from functools import cache

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.learning.drift.law import When
from edgesim.learning.drift.rotation import Rotation

FIRST = [0.315726, 0.279989, 0.192628, 0.098128, 0.033481, 0.006394, 0.000866, 0.001915, 0.014264, 0.056608]
HALF = [0.000484, 0.002395, 0.015167, 0.051292, 0.111297, 0.174996, 0.211489, 0.200793, 0.148896, 0.083190]
AMONG = {
    (4, 4): [0.922349, 0.902318, 0.817259, 0.584318, 0.231523, 0.046463, 0.006355, 0.014020, 0.102230, 0.373166],
    (6, 6): [0.997171, 0.995845, 0.987660, 0.939840, 0.677854, 0.156868, 0.021866, 0.048078, 0.334379, 0.840439],
    (6, 8): [0.998988, 0.998504, 0.995453, 0.976524, 0.854635, 0.408022, 0.061103, 0.132969, 0.640246, 0.933556],
}


def chances(law, turn, device=0):
    return law.chances(np.array([device]), turn, 100, 10)[0]


@pytest.mark.parametrize(("turn", "expected"), [(0, FIRST), (25, HALF), (50, FIRST)])
def test_two_cycles_in_a_hundred_rounds_have_the_chances_of_the_page(turn, expected):
    found = chances(Rotation(speed=2.0), turn)
    np.testing.assert_allclose(found, expected, atol=5e-7)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(chances(Rotation(rotates=False), turn), chances(Rotation(), 0))
    # At the speed of the paper's code.
    found = chances(Rotation(speed=0.15), 10, device=3)
    assert found[[9, 4]] == pytest.approx([0.341558, 0.001083], abs=5e-7)


def test_the_chances_follow_the_cosine_of_eq_3_1():
    devices, classes = np.arange(7)[:, None], np.arange(5)
    weight = (np.cos(2 * np.pi * 13 * 1.7 / 40 + 0.3 * devices + 0.9 * classes) + 1.1) ** 2
    found = Rotation(speed=1.7, offset=0.3, delta=0.9).chances(devices[:, 0], 13, 40, 5)
    np.testing.assert_allclose(found, weight / weight.sum(axis=1, keepdims=True), rtol=1e-12)


def exact_inclusion(p, most):
    """Chance that each class is among so many drawn one after another without replacement, by enumeration."""

    @cache
    def reach(drawn: int) -> float:
        """Chance that the set of bits is what has been drawn after as many draws."""
        if drawn == 0:
            return 1.0
        total = 0.0
        for label in range(len(p)):
            if drawn >> label & 1:
                rest = drawn & ~(1 << label)
                left = 1 - sum(p[other] for other in range(len(p)) if rest >> other & 1)
                total += reach(rest) * p[label] / left
        return total

    sets = [bits for bits in range(1 << len(p)) if bits.bit_count() == most]
    return np.array([sum(reach(bits) for bits in sets if bits >> label & 1) for label in range(len(p))])


@pytest.mark.parametrize("classes", AMONG, ids=str)
def test_each_class_is_among_those_drawn_as_often_as_enumeration_says(make_drift, classes):
    """T1b; 40,000 devices without an offset draw by the chances of device 0 in round 0."""
    p = chances(Rotation(), 0)
    exact = np.mean([exact_inclusion(p, most) for most in range(classes[0], classes[1] + 1)], axis=0)
    np.testing.assert_allclose(exact, AMONG[classes], atol=1e-6)
    devices = 40_000
    drift = make_drift(devices=devices, law="rotation", classes=list(classes), offset=0.0, per_class=1)
    held = drift.at(When(0, 0, 0.0))
    drawn = held.class_counts > 0
    assert np.unique(held.sizes).tolist() == list(range(classes[0], classes[1] + 1))
    # Numbers of classes are equally likely.
    counts = np.unique(held.sizes, return_counts=True)[1]
    assert np.abs(counts / devices - 1 / len(counts)).max() < 4 * np.sqrt(2 / 9 / devices)
    spread = np.sqrt(exact * (1 - exact) / devices)
    assert (np.abs(drawn.mean(axis=0) - exact) < 4 * spread).all()


def test_devices_hold_all_samples_of_the_drawn_classes_of_one_pool(make_drift):
    held = make_drift(law="rotation", classes=[2, 4]).at(When(3, 1, 0.0))
    for device in range(20):
        drawn = np.flatnonzero(held.class_counts[device])
        assert 2 <= len(drawn) <= 4
        assert held.samples_of(device).tolist() == [n for n in range(500) if n % 10 in drawn]
        assert held.sizes[device] == 50 * len(drawn)


def test_parts_of_the_training_set_are_equal_disjoint_and_random(make_drift):
    drift = make_drift(law="rotation", classes=[10, 10], pool="iid_partition", devices=7, per_class=51)
    held = drift.at(When(1, 1, 0.0))
    parts = [held.samples_of(device) for device in range(7)]
    assert [len(part) for part in parts] == [72] * 7
    assert len(np.unique(np.concatenate(parts))) == 7 * 72
    assert parts[0].tolist() != list(range(72))


def test_the_same_round_is_dealt_alike_in_any_order_and_otherwise_with_another_seed(make_drift):
    one, other = make_drift(law="rotation"), make_drift(law="rotation")
    rounds = [5, 1, 9, 5]
    forwards = {number: one.at(When(number, 1, 0.0)).class_counts for number in sorted(rounds)}
    for number in rounds:
        np.testing.assert_array_equal(other.at(When(number, 1, 7.0)).class_counts, forwards[number])
    assert (forwards[1] != forwards[5]).any()
    assert (make_drift(law="rotation", seed=1).at(When(5, 1, 0.0)).class_counts != forwards[5]).any()


def test_in_seconds_the_turn_is_time_over_the_length_of_a_round(make_drift):
    by_rounds = make_drift(law="rotation", tmax_s=0.5).at(When(6, 1, 99.0))
    in_seconds = make_drift(law="rotation", tmax_s=0.5, clock="seconds").at(When(2, 1, 3.0))
    np.testing.assert_array_equal(by_rounds.class_counts, in_seconds.class_counts)


@pytest.mark.parametrize(("speed", "warns"), [(50.0, False), (50.5, True)])
def test_more_than_half_a_cycle_in_a_round_warns(make_drift, speed, warns):
    note = make_drift(law="rotation", speed=speed).warning
    assert bool(note) == warns
    assert note.startswith("the drift goes through 0.505 of its cycle in a round") or not warns


PARTS = {"pool": "iid_partition"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"classes": [8, 6]}, r"classes: the least number comes first \(got \[8, 6\]\)"),
        ({"classes": [6, 11]}, r"^drift.classes: 11 are more than the 10 classes; lower it$"),
        (
            PARTS | {"per_class": 4},
            r"^drift.pool: the pool of device \d+ has 0 samples of class \d, and a device that",
        ),
        (PARTS | {"per_class": 1}, r"^devices.count: 20 devices are more than the 10 training samples"),
    ],
)
def test_what_cannot_be_dealt_is_refused_in_one_line(make_drift, given, message):
    with pytest.raises(EdgesimError, match=message):
        make_drift(law="rotation", **given)
