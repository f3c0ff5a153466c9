"""The devices: their positions, compute times, energy and batteries, and the topology of stations and servers."""

from edgesim.devices.battery import Batteries, make_batteries
from edgesim.devices.compute import compute_delay_quantile_s, compute_delay_s
from edgesim.devices.energy import activity_energy_j, compute_energy_j, download_energy_j, upload_energy_j
from edgesim.devices.placement import place_in_disc
from edgesim.devices.population import Population, make_population
from edgesim.devices.profile import Profile, read_profile, write_profile

__all__ = [
    "Batteries",
    "Population",
    "Profile",
    "activity_energy_j",
    "compute_delay_quantile_s",
    "compute_delay_s",
    "compute_energy_j",
    "download_energy_j",
    "make_batteries",
    "make_population",
    "place_in_disc",
    "read_profile",
    "upload_energy_j",
    "write_profile",
]
