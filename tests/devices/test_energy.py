import pytest

from edgesim.activities import ACTIVITIES, COMPUTE, DOWNLOAD, UPLOAD
from edgesim.config import DevicesConfig
from edgesim.devices.population import make_population

DEVICES = make_population(
    DevicesConfig(count=2, tx_power_dbm=23.0, pa_efficiency=0.35, compute_power_w=2.0, download_power_w=0.9)
)


@pytest.mark.parametrize(
    ("activity", "lasted_s", "energy_j"),
    # 23 dBm at 35 % efficiency draws 0.1995262315 / 0.35 = 0.570074947 W.
    [(COMPUTE, 0.16, 0.32), (COMPUTE, 0.0, 0.0), (UPLOAD, 0.5, 0.2850374736), (DOWNLOAD, 2.0, 1.8)],
)
def test_energy_is_the_power_that_is_drawn_times_time(activity, lasted_s, energy_j):
    power_w, efficiency = ACTIVITIES[activity].drawn(DEVICES)
    assert power_w[1] * lasted_s / efficiency[1] == pytest.approx(energy_j, rel=1e-9)
