"""Samples that arrive: the worked course of one device, the Poisson law over many, and no repeats."""

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.streams import Streams


def test_sizes_grow_by_one_at_each_gap_of_the_devices_own_stream(make_drift, at):
    """The gaps are drawn again from the stream; the sizes follow by counting."""
    drift = make_drift(law="arrival", rate_per_s=0.5, size=4, devices=5, seed=3)
    for device in range(5):
        gaps = [Streams(3).exponential("drift/gaps", np.array([device]), number)[0] / 0.5 for number in range(40)]
        times_s = np.cumsum(gaps)
        for t_s in (0.0, 1.0, 7.5, float(times_s[3])):
            assert drift.at(at(t_s)).sizes[device] == 4 + np.count_nonzero(times_s <= t_s)


def test_arrivals_of_many_devices_are_a_poisson_process(make_drift, at):
    """Counts over 4 s at 1.5 a second: mean and variance 6; those of two stretches are uncorrelated."""
    drift = make_drift(law="arrival", rate_per_s=1.5, size=2, devices=4000, labels=5, per_class=40)
    early, late = (drift.at(at(t_s)).sizes for t_s in (4.0, 8.0))
    for counts in (early - 2, late - early):
        assert counts.mean() == pytest.approx(6, abs=4 * np.sqrt(6 / 4000))
        # The variance of a Poisson count's sample variance is about (6 + 2 * 36) / n.
        assert counts.var() == pytest.approx(6, abs=4 * np.sqrt(78 / 4000))
    assert abs(np.corrcoef(early, late - early)[0, 1]) < 4 / np.sqrt(4000)


@pytest.mark.parametrize("pool", ["shared", "iid_partition"])
def test_no_sample_is_repeated_until_the_pool_is_empty_and_then_data_sets_stay(make_drift, at, pool):
    drift = make_drift(law="arrival", rate_per_s=2.0, size=3, devices=4, labels=5, per_class=12, pool=pool)
    size = 60 if pool == "shared" else 15
    before = [set() for _ in range(4)]
    for t_s in (0.0, 1.0, 2.0, 4.0, 60.0, 90.0):
        held = drift.at(at(t_s))
        for device in range(4):
            samples = held.samples_of(device)
            assert len(np.unique(samples)) == len(samples) == held.sizes[device] <= size
            assert np.bincount(samples % 5, minlength=5).tolist() == held.class_counts[device].tolist()
            assert before[device] <= set(samples.tolist())
            before[device] = set(samples.tolist())
    assert held.sizes.tolist() == [size] * 4


def test_the_newest_samples_take_the_place_of_the_oldest(make_drift, at):
    drift = make_drift(law="arrival", rate_per_s=2.0, size=4, devices=3, labels=5, per_class=3, keep="newest")
    grows = make_drift(law="arrival", rate_per_s=2.0, size=4, devices=3, labels=5, per_class=3)
    for t_s in (0.0, 0.7, 1.9, 40.0):
        held = drift.at(at(t_s))
        assert held.sizes.tolist() == [4] * 3
        for device in range(3):
            samples = held.samples_of(device)
            assert len(np.unique(samples)) == 4
            assert np.bincount(samples % 5, minlength=5).tolist() == held.class_counts[device].tolist()
            assert set(samples.tolist()) <= set(grows.at(at(t_s)).samples_of(device).tolist())
    first, later = drift.at(at(0.0)).samples_of(0), drift.at(at(1.9)).samples_of(0)
    assert set(first.tolist()) != set(later.tolist())


def test_the_course_is_the_same_however_often_and_in_which_order_it_is_asked_for(make_drift, at):
    one, other = (make_drift(law="arrival", rate_per_s=1.0, size=2, keep="newest") for _ in range(2))
    forwards = {t_s: one.at(at(t_s)).class_counts for t_s in (0.5, 1.0, 1.5, 6.0)}
    held = other.at(at(6.0))
    for t_s in (1.0, 0.5, 6.0):
        np.testing.assert_array_equal(other.at(at(t_s)).class_counts, forwards[t_s])
    # What was asked for before is still that of its instant.
    np.testing.assert_array_equal(held.class_counts, forwards[6.0])
    assert np.bincount(held.samples_of(7) % 10, minlength=10).tolist() == held.class_counts[7].tolist()


def test_more_samples_than_a_pool_has_cannot_be_there_at_the_start(make_drift):
    said = r"^data.samples_per_device: devices begin with 26 samples, and the pool of a device has 25; lower it"
    with pytest.raises(EdgesimError, match=said):
        make_drift(law="arrival", rate_per_s=1.0, size=26, pool="iid_partition")
