"""Path loss beside Sionna's, where it is installed (`pip install "edgesim[sionna]"`)."""

import numpy as np
import pytest

from edgesim.radio.environment import load_environment

tr38901 = pytest.importorskip("sionna.phy.channel.tr38901")
torch = pytest.importorskip("torch")

CARRIER_HZ = 3.5e9
STREET_M = np.array([15.0, 40.0, 100.0, 180.0, 300.0, 500.0, 800.0, 2000.0])
OFFICE_M = np.array([2.0, 5.0, 10.0, 20.0, 50.0, 100.0])


@pytest.mark.parametrize("los", [True, False], ids=["los", "nlos"])
@pytest.mark.parametrize(
    ("name", "scenario", "heights_m", "distance_m"),
    [
        ("uma", "UMaScenario", (25.0, 1.5), STREET_M),
        ("umi-street-canyon", "UMiScenario", (10.0, 1.5), STREET_M),
        ("inh-office", "InHScenario", (3.0, 1.0), OFFICE_M),
    ],
)
def test_path_loss_and_chance_of_sight_agree_with_sionnas(name, scenario, heights_m, distance_m, los):
    if not hasattr(tr38901, scenario):
        pytest.skip(f"this Sionna has no {scenario}")
    indoors = scenario == "InHScenario"
    antenna = tr38901.Antenna(
        polarization="single", polarization_type="V", antenna_pattern="omni", carrier_frequency=CARRIER_HZ
    )
    theirs = getattr(tr38901, scenario)(
        carrier_frequency=CARRIER_HZ, ut_array=antenna, bs_array=antenna, direction="uplink",
        precision="double", device="cpu", **({"indoor_scenario": "mixed"} if indoors else {"o2i_model": "low"}),
    )  # fmt: skip
    count = len(distance_m)
    devices = np.stack([distance_m, np.zeros(count), np.full(count, heights_m[1])], axis=-1)[None]
    zeros = torch.zeros((1, count, 3), dtype=torch.float64)
    theirs.set_topology(
        ut_loc=torch.from_numpy(devices),
        bs_loc=torch.tensor([[[0.0, 0.0, heights_m[0]]]], dtype=torch.float64),
        ut_orientations=zeros,
        bs_orientations=torch.zeros((1, 1, 3), dtype=torch.float64),
        ut_velocities=zeros,
        in_state=torch.full((1, count), indoors),
        los=los,
    )
    law = load_environment(name).path_loss
    np.testing.assert_allclose(law.loss_db(distance_m, los), theirs.basic_pathloss.reshape(-1).numpy(), atol=0.1)
    np.testing.assert_allclose(law.los_probability(distance_m), theirs.los_probability.reshape(-1).numpy(), atol=1e-6)
