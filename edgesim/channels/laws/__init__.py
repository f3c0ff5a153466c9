"""The registry of path-loss laws by their names in environment files: one file and one line each."""

from edgesim.channels.laws.free_space import FreeSpace
from edgesim.channels.laws.inh_office import IndoorOffice
from edgesim.channels.laws.law import Law
from edgesim.channels.laws.log_distance import LogDistance
from edgesim.channels.laws.uma import UrbanMacro
from edgesim.channels.laws.umi_street_canyon import UrbanMicroStreetCanyon
from edgesim.registry import Registry

_OWN: dict[str, type[Law]] = {
    "free-space": FreeSpace,
    "inh-office": IndoorOffice,
    "log-distance": LogDistance,
    "uma": UrbanMacro,
    "umi-street-canyon": UrbanMicroStreetCanyon,
}
LAWS = Registry("path_loss.law", "path_loss", Law, _OWN)
"""Every law that ``path_loss.law`` may name."""
