from dataclasses import fields

import pytest

from edgesim.config import DevicesConfig
from edgesim.devices.population import make_population


def test_the_default_population_is_fedteddis_thirty_devices():
    devices = make_population(DevicesConfig())
    assert len(devices) == 30
    assert devices.link_bps is None
    assert devices.keys is None
    known = [getattr(devices, field.name) for field in fields(devices) if field.name not in ("link_bps", "keys")]
    assert all(column.shape == (30,) for column in known)
    assert devices.tx_power_w[29] == pytest.approx(0.1995262315, rel=1e-9)
    assert (devices.a_s[0], devices.mu_per_s[0]) == (0.0005, 2000.0)
    assert (devices.pa_efficiency[0], devices.compute_power_w[0], devices.download_power_w[0]) == (0.35, 2.0, 0.9)
