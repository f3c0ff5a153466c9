"""Which station serves whom."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from edgesim.devices.attachment import attach

gains = st.tuples(st.integers(1, 5), st.integers(1, 40)).flatmap(
    lambda shape: arrays(float, shape, elements=st.floats(1e-12, 1e-6))
)


@given(gains)
def test_the_strongest_and_the_nearest_are_what_they_say(gain):
    distance_m = gain[::-1]
    ones = np.ones(len(gain))
    devices = np.arange(gain.shape[1])
    assert (gain[attach("strongest", gain, distance_m, ones), devices] == gain.max(axis=0)).all()
    assert (distance_m[attach("nearest", gain, distance_m, ones), devices] == distance_m.min(axis=0)).all()


@given(gains)
def test_the_least_loaded_is_never_more_than_6_db_weaker_than_the_strongest(gain):
    own = attach("least_loaded", gain, gain, np.ones(len(gain)))
    assert (gain[own, np.arange(gain.shape[1])] >= 0.999 * 10**-0.6 * gain.max(axis=0)).all()


@given(gains, st.lists(st.floats(0.5, 2.0), min_size=5, max_size=5))
def test_one_by_one_devices_join_the_station_with_the_fewest_devices_per_hertz(gain, shares):
    share = np.array(shares[: len(gain)])
    joined = np.zeros(len(gain))
    for device, own in enumerate(attach("least_loaded", gain, gain, share)):
        near = gain[:, device] >= 10**-0.6 * gain[:, device].max()
        load = joined / share
        assert load[own] <= load[near].min() * (1 + 1e-9)
        joined[own] += 1


def test_equally_strong_stations_fill_up_in_proportion_to_their_bands():
    gain = np.ones((3, 400))
    own = attach("least_loaded", gain, gain, np.array([1.0, 2.0, 1.0]))
    assert np.bincount(own).tolist() == [100, 200, 100]
