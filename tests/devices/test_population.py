import time
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from edgesim.config import DevicesConfig
from edgesim.devices.population import make_population
from edgesim.streams import Streams


def test_the_default_population_is_fedteddis_thirty_devices() -> None:
    devices = make_population(DevicesConfig(), Streams(0))
    assert len(devices) == 30
    assert devices.link_bps is None
    assert devices.keys is None
    known = [getattr(devices, field.name) for field in fields(devices) if field.name not in ("link_bps", "keys")]
    assert all(column.shape == (30,) for column in known)
    assert devices.tx_power_w[29] == pytest.approx(0.1995262315, rel=1e-9)
    assert (devices.a_s[0], devices.mu_per_s[0]) == (0.0005, 2000.0)
    assert (devices.pa_efficiency[0], devices.compute_power_w[0], devices.download_power_w[0]) == (
        0.35,
        2.0,
        0.9,
    )
    assert devices.station.tolist() == [0] * 30


def test_distances_are_those_of_the_positions_and_within_the_ring() -> None:
    devices = make_population(DevicesConfig(count=1000, radius_m=100.0, min_distance_m=50.0), Streams(0))
    np.testing.assert_allclose(devices.distance_m**2, devices.x_m**2 + devices.y_m**2, rtol=1e-12)
    assert devices.distance_m.min() >= 50.0 * (1 - 1e-12)
    assert devices.distance_m.max() <= 100.0


def test_more_devices_leave_the_first_ones_where_they_are() -> None:
    few, many = (make_population(DevicesConfig(count=count), Streams(6)) for count in (10, 1000))
    assert few.x_m.tolist() == many.x_m[:10].tolist()
    assert few.x_m.tolist() != make_population(DevicesConfig(count=10), Streams(7)).x_m.tolist()


def test_a_million_devices_are_cheap() -> None:
    start = time.process_time()
    devices = make_population(DevicesConfig(count=1_000_000), Streams(0))
    assert time.process_time() - start < 5.0
    assert len(devices) == 1_000_000
    # What all devices share is one number, not a million.
    assert devices.tx_power_w.strides == (0,)


def test_a_population_cannot_be_changed() -> None:
    devices = make_population(DevicesConfig(count=3), Streams(0))
    with pytest.raises(FrozenInstanceError):
        devices.x_m = np.zeros(3)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        devices.a_s[0] = 1.0
