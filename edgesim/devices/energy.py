"""Energy of a device's activities; an activity that is cut short costs energy for the time it lasted."""

from edgesim.devices.population import Population


def activity_energy_j(devices: Population, device: int, activity: str, seconds: float) -> float:
    """Joules of a device's ``download``, ``compute`` or ``upload`` that lasts ``seconds``; 0 for other activities.

    An upload draws P_tx / efficiency, the power of the amplifier.
    """
    # On single numbers: it is called for every row of a run, where conversions to arrays would dominate.
    if activity == "upload":
        return devices.tx_power_w.item(device) * seconds / devices.pa_efficiency.item(device)
    if activity == "compute":
        return devices.compute_power_w.item(device) * seconds
    if activity == "download":
        return devices.download_power_w.item(device) * seconds
    return 0.0
