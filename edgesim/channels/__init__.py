"""The radio: path loss, shadowing, Shannon rate, least bandwidth and the sharing of a band."""

from edgesim.channels.allocation import equal_finish_s
from edgesim.channels.bandwidth import min_bandwidth_hz, rate_bps
from edgesim.channels.environment import Environment, Shadowing, load_environment, mean_power_gain

__all__ = [
    "Environment",
    "Shadowing",
    "equal_finish_s",
    "load_environment",
    "mean_power_gain",
    "min_bandwidth_hz",
    "rate_bps",
]
