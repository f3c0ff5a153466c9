import numpy as np
import pytest

from edgesim.devices.energy import compute_energy_j, download_energy_j, upload_energy_j


def test_computing_costs_power_times_time() -> None:
    assert compute_energy_j(2.0, [0.16, 0.0]).tolist() == [0.32, 0.0]


def test_an_upload_costs_what_the_amplifier_draws() -> None:
    # 23 dBm at 35 % efficiency draws 0.1995262315 / 0.35 = 0.570074947 W.
    assert upload_energy_j(0.1995262315, 0.35, 0.5) == pytest.approx(0.2850374736, rel=1e-9)


def test_receiving_costs_power_times_time() -> None:
    assert download_energy_j(0.9, 2.0) == pytest.approx(1.8)


def test_energies_broadcast_over_devices() -> None:
    assert upload_energy_j(np.array([0.1, 0.2]), 0.5, np.array([[1.0], [2.0]])).tolist() == [
        [0.2, 0.4],
        [0.4, 0.8],
    ]
