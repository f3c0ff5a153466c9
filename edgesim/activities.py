"""Activities of devices, which take time and energy and have rows in ``activities``."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Literal, Protocol

import numpy as np

from edgesim.base.arrays import Floats

DOWNLOAD: Final = "download"
COMPUTE: Final = "compute"
UPLOAD: Final = "upload"
Name = Literal["download", "compute", "upload"]


class Powers(Protocol):
    """Powers of devices in W, and efficiencies of their amplifiers, [n] each."""

    @property
    def download_power_w(self) -> Floats:
        """Power of the receiver."""

    @property
    def compute_power_w(self) -> Floats:
        """Power of the processor."""

    @property
    def tx_power_w(self) -> Floats:
        """Power on the air."""

    @property
    def pa_efficiency(self) -> Floats:
        """Share of an amplifier's power that is on the air."""


@dataclass(frozen=True)
class Activity:
    """An activity of a device."""

    power_w: Callable[[Powers], Floats]
    """Power of each device that does it, in W, [N], without an amplifier's losses."""
    on_air: bool
    """Whether the activity occupies the uplink band, by an amplifier whose efficiency divides its power."""
    color: str
    dark: str
    """Colour on a dark page."""
    hatch: str = ""

    def drawn(self, of: Powers) -> tuple[Floats, Floats]:
        """Power of each device in W, [N], and what it is divided by, [N]: P_tx / efficiency on the air, else by 1."""
        power_w = self.power_w(of)
        return power_w, of.pa_efficiency if self.on_air else np.broadcast_to(1.0, len(power_w))


ACTIVITIES: dict[str, Activity] = {
    DOWNLOAD: Activity(attrgetter("download_power_w"), False, "#56B4E9", "#56b4e9", "...."),
    COMPUTE: Activity(attrgetter("compute_power_w"), False, "#E69F00", "#e69f00"),
    UPLOAD: Activity(attrgetter("tx_power_w"), True, "#0072B2", "#3d9bd6", "////"),
}
"""Activities by name, in the order of a task."""

ON_AIR = [name for name, activity in ACTIVITIES.items() if activity.on_air]
