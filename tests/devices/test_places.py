import numpy as np
import pytest
from scipy import stats

from edgesim.config import DevicesConfig
from edgesim.devices.places import place_in_disc, places_around_one_station
from edgesim.streams import Streams


@pytest.mark.parametrize("min_distance_m", [0.0, 10.0, 200.0])
def test_devices_spread_uniformly_over_the_ring(min_distance_m):
    x_m, y_m = place_in_disc(np.arange(20_000), 250.0, min_distance_m, Streams(1))
    distance_m = np.hypot(x_m, y_m)
    assert distance_m.min() >= min_distance_m * (1 - 1e-12)
    assert distance_m.max() <= 250.0 * (1 + 1e-12)
    # Uniform over the area: the share of the ring's area inside each device is uniform, and so is its angle.
    inside = (distance_m**2 - min_distance_m**2) / (250.0**2 - min_distance_m**2)
    turns = np.arctan2(y_m, x_m) / (2 * np.pi) + 0.5
    assert stats.kstest(inside, "uniform").pvalue > 1e-4
    assert stats.kstest(turns, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(inside, turns)[0, 1]) < 4.5 / np.sqrt(len(turns))


def test_a_device_stands_where_it_stands_whoever_else_is_placed():
    x_m, y_m = place_in_disc(np.arange(100), 250.0, 10.0, Streams(2))
    some = np.array([70, 4, 99])
    some_x_m, some_y_m = place_in_disc(some, 250.0, 10.0, Streams(2))
    assert some_x_m.tolist() == x_m[some].tolist()
    assert some_y_m.tolist() == y_m[some].tolist()


def test_distances_are_those_of_the_positions_and_within_the_ring():
    config, ids = DevicesConfig(count=1000, radius_m=100.0, min_distance_m=50.0), np.arange(1000)
    places = places_around_one_station(config, Streams(0))
    x_m, y_m = places.positions_m(ids, 0.0)
    distance_m = places.distances_m(ids, 0.0)
    np.testing.assert_allclose(distance_m**2, x_m**2 + y_m**2, rtol=1e-12)
    assert distance_m.min() >= 50.0 * (1 - 1e-12)
    assert distance_m.max() <= 100.0
    assert not places.stations(ids, 0.0).any()
