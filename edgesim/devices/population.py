"""All devices of a run as a struct of arrays."""

from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Floats
from edgesim.base.content import find
from edgesim.base.device_keys import DeviceKeys, need_devices
from edgesim.base.errors import EdgesimError
from edgesim.config import DevicesConfig
from edgesim.devices.profile import Profile, read_profile

_KAPPA = 1e-28


@dataclass(frozen=True)
class Population:
    """One row per device, [n]; a value that all devices share is a read-only broadcast of one number."""

    a_s: Floats
    """Least compute time per sample."""
    mu_per_s: Floats
    """Rate of the random part of the compute time, in samples per second; inf where nothing is random."""
    tx_power_w: Floats
    pa_efficiency: Floats
    compute_power_w: Floats
    download_power_w: Floats
    idle_power_w: Floats
    """Drawn all the time; the other powers are added to it."""
    link_bps: Floats | None
    """Rate of each device's own uplink, where a profile recorded one."""
    keys: DeviceKeys | None = None
    """Keys of the devices in the availability recording, or else in the profile; None if neither has keys."""

    def __len__(self) -> int:
        return len(self.a_s)


def make_population(config: DevicesConfig, keys: DeviceKeys | None = None) -> Population:
    """Equip devices as the config says.

    ``keys`` are those of an availability recording: a profile with keys is matched to the devices by them. Raises
    `EdgesimError` for a device profile that is bad, too short, or lacks a key.
    """
    keys = keys if config.match is None else None

    def shared(value: float) -> Floats:
        return np.broadcast_to(np.float64(value), config.count)

    a_s, mu_per_s, link_bps = shared(config.a_s_per_sample), shared(config.mu_samples_per_s), None
    compute_power_w = shared(config.compute_power_w)
    if config.profile is not None:
        profile, keys = _recorded(config, config.profile, keys)
        # A profile has only a measured time per sample, so the compute time has no random part.
        a_s, mu_per_s, link_bps = profile.s_per_sample, shared(np.inf), profile.link_bps
        compute_power_w = _power_w(config, profile, compute_power_w)
    return Population(
        a_s=a_s,
        mu_per_s=mu_per_s,
        tx_power_w=shared(10.0 ** ((config.tx_power_dbm - 30.0) / 10.0)),
        pa_efficiency=shared(config.pa_efficiency),
        compute_power_w=compute_power_w,
        download_power_w=shared(config.download_power_w),
        idle_power_w=shared(config.idle_power_w),
        link_bps=link_bps,
        keys=keys,
    )


def _recorded(config: DevicesConfig, name: str, keys: DeviceKeys | None) -> tuple[Profile, DeviceKeys | None]:
    """The rows of a profile for the devices of a run, and the keys of the devices."""
    path = find("traces", name, ".parquet", "devices.profile", "s_per_sample")
    profile, count = read_profile(path), config.count
    own = None if profile.keys is None or config.match is not None else DeviceKeys(profile.keys, str(path))
    if keys is not None and own is not None:
        return profile.of(keys.rows_in(own)), keys
    need_devices(str(path), "profile", len(profile.s_per_sample), count)
    return profile.of(np.arange(count)), keys if own is None else own.first(count)


def _power_w(config: DevicesConfig, profile: Profile, shared_w: Floats) -> Floats:
    """Power of each processor, [n]: kappa f^2 joules on each of f cycles a second if f is known, else ``shared_w``."""
    if profile.clock_hz is not None:
        return (config.kappa or _KAPPA) * profile.clock_hz**3
    if config.kappa is not None:
        raise EdgesimError(
            f"{find('traces', str(config.profile), '.parquet')}: has no column clock_hz, which devices.kappa needs; "
            "add the column, or remove devices.kappa"
        )
    return shared_w
