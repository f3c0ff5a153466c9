"""The registry of path-loss laws by their names in environment files: one file and one line each."""

from edgesim.base.registry import Registry
from edgesim.radio.laws.free_space import FreeSpace
from edgesim.radio.laws.inh_office import IndoorOffice
from edgesim.radio.laws.law import Law
from edgesim.radio.laws.log_distance import LogDistance
from edgesim.radio.laws.uma import UrbanMacro
from edgesim.radio.laws.umi_street_canyon import UrbanMicroStreetCanyon

_OWN: dict[str, type[Law]] = {
    "free-space": FreeSpace,
    "inh-office": IndoorOffice,
    "log-distance": LogDistance,
    "uma": UrbanMacro,
    "umi-street-canyon": UrbanMicroStreetCanyon,
}
LAWS = Registry("path_loss.law", "path_loss", Law, _OWN)
"""Every law that ``path_loss.law`` may name."""
