import numpy as np

from edgesim.config import DevicesConfig
from edgesim.devices.places import places_around_one_station
from edgesim.streams import Streams


def test_distances_are_those_of_the_positions_and_within_the_ring() -> None:
    config, ids = DevicesConfig(count=1000, radius_m=100.0, min_distance_m=50.0), np.arange(1000)
    places = places_around_one_station(config, Streams(0))
    x_m, y_m = places.positions_m(ids, 0.0)
    distance_m = places.distances_m(ids, 0.0)
    np.testing.assert_allclose(distance_m**2, x_m**2 + y_m**2, rtol=1e-12)
    assert distance_m.min() >= 50.0 * (1 - 1e-12)
    assert distance_m.max() <= 100.0
    assert not places.stations(ids, 0.0).any()


def test_devices_that_stand_still_are_at_any_instant_where_they_were_at_the_start() -> None:
    places, some = places_around_one_station(DevicesConfig(count=30), Streams(0)), np.array([7, 3])
    for of in (places.positions_m, places.distances_m, places.stations):
        assert np.array_equal(of(some, 1e6), of(some, 0.0))
    assert places.since_s(1e6) == places.since_s(0.0)


def test_more_devices_leave_the_first_ones_where_they_are() -> None:
    few, many, other = (
        places_around_one_station(DevicesConfig(count=count), Streams(seed))
        for count, seed in ((10, 6), (99, 6), (10, 7))
    )
    assert few.x_m.tolist() == many.x_m[:10].tolist()
    assert few.x_m.tolist() != other.x_m.tolist()
