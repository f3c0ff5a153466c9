import pytest

from edgesim.activities import ACTIVITIES, COMPUTE, DOWNLOAD, UPLOAD
from edgesim.config import DevicesConfig
from edgesim.devices.population import make_population

DEVICES = make_population(
    DevicesConfig(count=2, tx_power_dbm=23.0, pa_efficiency=0.35, compute_power_w=2.0, download_power_w=0.9)
)


def energy_j(activity: str, device: int, lasted_s: float) -> float:
    power_w, efficiency = ACTIVITIES[activity].drawn(DEVICES)
    return float(power_w[device] * lasted_s / efficiency[device])


def test_computing_costs_power_times_time() -> None:
    assert energy_j(COMPUTE, 1, 0.16) == 0.32
    assert energy_j(COMPUTE, 1, 0.0) == 0.0


def test_an_upload_costs_what_the_amplifier_draws() -> None:
    # 23 dBm at 35 % efficiency draws 0.1995262315 / 0.35 = 0.570074947 W.
    assert energy_j(UPLOAD, 0, 0.5) == pytest.approx(0.2850374736, rel=1e-9)


def test_receiving_costs_power_times_time() -> None:
    assert energy_j(DOWNLOAD, 0, 2.0) == pytest.approx(1.8)
