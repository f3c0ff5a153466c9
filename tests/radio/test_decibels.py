import numpy as np
import pytest

from edgesim.radio.decibels import db_from_ratio, ratio_from_db, watts_from_dbm


def test_the_papers_transmit_power_and_noise_density_in_linear_units():
    # FedTeddi, section V-A: 23 dBm = 0.1995262315 W, -174 dBm/Hz = 3.981071706e-21 W/Hz.
    assert watts_from_dbm(23.0) == pytest.approx(0.1995262315, rel=1e-9)
    assert watts_from_dbm(-174.0) == pytest.approx(3.981071706e-21, rel=1e-9, abs=0)


def test_ratios_are_the_inverse_of_ten_times_their_logarithm():
    values_db = np.linspace(-200.0, 100.0, 31)
    np.testing.assert_allclose(10.0 * np.log10(ratio_from_db(values_db)), values_db, rtol=1e-12, atol=1e-12)
    assert ratio_from_db(10.0) == 10.0


def test_decibels_of_ratios():
    np.testing.assert_allclose(db_from_ratio([1.0, 2.0, 1e-20]), [0.0, 3.010299956639812, -200.0], rtol=1e-12)
