import numpy as np
import pytest
from scipy.constants import speed_of_light

from edgesim.radio.laws.free_space import FreeSpace
from edgesim.radio.laws.log_distance import LogDistance

MACRO = LogDistance(loss_at_1_km_db=128.1, slope_db_per_decade=37.6)
FLAT = FreeSpace(carrier_hz=3.5e9, station_height_m=1.5, device_height_m=1.5)


def test_the_macro_law_at_250_m():
    # 128.1 + 37.6 log10(0.25), FedTeddi section V-A.
    assert MACRO.loss_db(250.0) == pytest.approx(105.4625, abs=5e-5)
    assert 10 ** (-MACRO.loss_db(250.0) / 10) == pytest.approx(2.842795e-11, rel=2e-7, abs=0)


def test_free_space_at_250_m_and_3_5_ghz():
    assert FLAT.loss_db(250.0) == pytest.approx(91.2879, abs=5e-5)


def test_free_space_loses_nothing_where_the_wavelength_is_four_pi_distances():
    assert FLAT.loss_db(speed_of_light / 3.5e9 / (4 * np.pi)) == pytest.approx(0.0, abs=1e-12)


def test_free_space_uses_the_direct_distance_between_the_heights():
    # A 3-4-5 triangle: 30 m apart on the ground and 40 m in height are 50 m.
    tower = FreeSpace(carrier_hz=3.5e9, station_height_m=41.5, device_height_m=1.5)
    assert tower.loss_db(30.0) == pytest.approx(FLAT.loss_db(50.0), rel=1e-12)


@pytest.mark.parametrize(("law", "decade_db"), [(MACRO, 37.6), (FLAT, 20.0)])
def test_ten_times_the_distance_costs_the_laws_slope(law, decade_db):
    distance_m = np.array([10.0, 33.0, 250.0])
    np.testing.assert_allclose(law.loss_db(10 * distance_m) - law.loss_db(distance_m), decade_db, rtol=1e-12)
