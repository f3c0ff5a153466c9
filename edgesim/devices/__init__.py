"""The devices: where they are, how long they compute, what energy that costs."""

from edgesim.devices.compute import compute_delay_quantile_s, compute_delay_s
from edgesim.devices.energy import compute_energy_j, download_energy_j, upload_energy_j
from edgesim.devices.placement import place_in_disc
from edgesim.devices.population import Population, make_population

__all__ = [
    "Population",
    "compute_delay_quantile_s",
    "compute_delay_s",
    "compute_energy_j",
    "download_energy_j",
    "make_population",
    "place_in_disc",
    "upload_energy_j",
]
