"""Path-loss laws by the name that an environment file gives: one file and one line each."""

from edgesim.channels.laws.free_space import FreeSpace
from edgesim.channels.laws.law import Law
from edgesim.channels.laws.log_distance import LogDistance

LAWS: dict[str, type[Law]] = {
    "free-space": FreeSpace,
    "log-distance": LogDistance,
}
"""Every law that ``path_loss.law`` may name."""
