"""Energy of a device's activities; an activity that is cut short costs energy for the time it lasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from edgesim.arrays import Floats

if TYPE_CHECKING:
    from edgesim.devices.population import Population


def compute_energy_j(compute_power_w: ArrayLike, busy_s: ArrayLike) -> Floats:
    """Joules of computing for ``busy_s`` seconds, elementwise."""
    return _energy_j(compute_power_w, busy_s)


def clocked_power_w(kappa: ArrayLike, clock_hz: ArrayLike) -> Floats:
    """Watts of a processor that spends kappa f^2 joules on each of its f cycles a second, elementwise."""
    return np.asarray(kappa, dtype=np.float64) * np.asarray(clock_hz, dtype=np.float64) ** 3


def upload_energy_j(tx_power_w: ArrayLike, pa_efficiency: ArrayLike, airtime_s: ArrayLike) -> Floats:
    """Joules that the power amplifier draws in ``airtime_s`` seconds: P_tx / efficiency x airtime."""
    return _energy_j(tx_power_w, airtime_s) / np.asarray(pa_efficiency, dtype=np.float64)


def download_energy_j(download_power_w: ArrayLike, airtime_s: ArrayLike) -> Floats:
    """Joules of receiving for ``airtime_s`` seconds, elementwise."""
    return _energy_j(download_power_w, airtime_s)


def activity_energy_j(devices: Population, device: int, activity: str, seconds: float) -> float:
    """Joules of a device's ``download``, ``compute`` or ``upload`` that lasts ``seconds``; 0 for other activities."""
    # Not by the functions above: it is called for every row of a run, and their conversions to arrays would dominate.
    if activity == "upload":
        return devices.tx_power_w.item(device) * seconds / devices.pa_efficiency.item(device)
    if activity == "compute":
        return devices.compute_power_w.item(device) * seconds
    if activity == "download":
        return devices.download_power_w.item(device) * seconds
    return 0.0


def _energy_j(power_w: ArrayLike, seconds: ArrayLike) -> Floats:
    return np.asarray(np.asarray(power_w, dtype=np.float64) * np.asarray(seconds, dtype=np.float64))
