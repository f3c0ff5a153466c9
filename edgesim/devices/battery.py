"""Batteries: charging, the draw of work and idling, and when the charge suffices to check in."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.config import DevicesConfig
from edgesim.streams import Streams


@dataclass
class Batteries:
    """Batteries of all devices, [N]: while a device's power draw is constant, its charge is linear in time.

    The charger feeds ``recharge_w`` and the device draws ``idle_w`` all the time; what a full battery cannot take is
    lost. A battery runs empty only if its device draws more than the charger feeds. A device with an empty battery
    idles on what the charger feeds, at most ``idle_w``.
    """

    SAVED: ClassVar = ("charge_j", "since_s", "draw_w", "_idle_before_j")

    capacity_j: float
    reserve_j: float
    """Least charge to check in with."""
    recharge_w: float
    charge_j: Floats
    """Charge at ``since_s``, [N]."""
    since_s: Floats
    """Instant at which the power draw of each device last changed, in s, [N]."""
    draw_w: Floats
    """Power that each device draws above ``idle_w``, [N]; 0 while it does not work."""
    idle_w: float = 0.0
    _idle_before_j: Floats = field(init=False)
    """Joules that idling had taken by ``since_s``, [N]."""

    def __post_init__(self) -> None:
        self._idle_before_j = np.zeros_like(self.charge_j)

    def charge_at(self, ids: Integers | int, t_s: float) -> Floats:
        """Charge of each device in J at an instant that is not before ``since_s``, [n]."""
        net_w = self.recharge_w - self.idle_w - self.draw_w[ids]
        return np.asarray(np.clip(self.charge_j[ids] + net_w * (t_s - self.since_s[ids]), 0.0, self.capacity_j))

    def idle_j(self, ids: Integers | int, t_s: float) -> Floats:
        """Joules that idling has taken from t = 0 to an instant that is not before ``since_s``, [n]."""
        drain_w, passed_s = self.idle_w + self.draw_w[ids] - self.recharge_w, t_s - self.since_s[ids]
        with np.errstate(divide="ignore", invalid="ignore"):
            on_s = np.where(drain_w > 0, np.minimum(passed_s, self.charge_j[ids] / drain_w), passed_s)
        off_w = min(self.idle_w, self.recharge_w)
        return np.asarray(self._idle_before_j[ids] + self.idle_w * on_s + off_w * (passed_s - on_s))

    def draw(self, device: int, power_w: float, t_s: float) -> float:
        """Let a device draw ``power_w`` above ``idle_w`` from ``t_s`` on; returns when its battery is empty, or inf."""
        charge_j = float(self.charge_at(device, t_s))
        if self.idle_w > 0:
            self._idle_before_j[device] = self.idle_j(device, t_s)
        self.charge_j[device], self.since_s[device], self.draw_w[device] = charge_j, t_s, power_w
        net_w = power_w + self.idle_w - self.recharge_w
        return t_s + charge_j / net_w if net_w > 0 else np.inf

    def ready_s(self) -> tuple[Floats, Floats]:
        """Instants, in s, from and until which each device has its reserve, [N] each; inf where it never will.

        Exact for devices that do not work. For a device at work it is the widest possible span, as if it had not worked
        since ``since_s``.
        """
        above_j = self.charge_j - self.reserve_j
        net_w = self.recharge_w - self.idle_w
        if net_w > 0:
            return self.since_s + np.maximum(-above_j, 0.0) / net_w, np.full_like(above_j, np.inf)
        has_it = above_j >= 0
        from_s = np.where(has_it, self.since_s, np.inf)
        if net_w == 0:
            return from_s, np.full_like(above_j, np.inf)
        return from_s, np.where(has_it, self.since_s + above_j / -net_w, np.inf)

    def ready(self, ids: Integers, t_s: float) -> Booleans:
        """Whether each of some devices that do not work has its reserve at ``t_s``, [n]."""
        from_s, until_s = self.ready_s()
        return np.asarray((from_s[ids] <= t_s) & (t_s <= until_s[ids]))


def make_batteries(config: DevicesConfig, streams: Streams) -> Batteries | None:
    """The batteries of a resolved config at t = 0, None for devices on mains. Draws: stream ``battery``."""
    if config.battery_j is None:
        return None
    assert config.battery_start is not None
    assert config.battery_reserve is not None
    assert config.recharge_w is not None
    if config.battery_start == "drawn":
        start = streams.uniform("battery", np.arange(config.count))
    else:
        start = np.full(config.count, config.battery_start)
    return Batteries(
        capacity_j=config.battery_j,
        reserve_j=config.battery_reserve * config.battery_j,
        recharge_w=config.recharge_w,
        charge_j=start * config.battery_j,
        since_s=np.zeros(config.count),
        draw_w=np.zeros(config.count),
        idle_w=config.idle_power_w,
    )
