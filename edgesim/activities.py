"""Activities of devices, which take time and energy and have rows in ``activities``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

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

    energy_j: Callable[[Powers, int, float], float]
    """Energy in J of a device that does it for some seconds: a function of powers, device and seconds."""
    on_air: bool
    """Whether the activity occupies the uplink band."""
    color: str
    dark: str
    """Colour on a dark page."""
    hatch: str = ""


# On single numbers: energies are worked out for every row of a run, where conversions to arrays would dominate.
ACTIVITIES: dict[str, Activity] = {
    DOWNLOAD: Activity(lambda of, n, s: of.download_power_w.item(n) * s, False, "#56B4E9", "#56b4e9", "...."),
    COMPUTE: Activity(lambda of, n, s: of.compute_power_w.item(n) * s, False, "#E69F00", "#e69f00"),
    # P_tx / efficiency, the power of the amplifier.
    UPLOAD: Activity(
        lambda of, n, s: of.tx_power_w.item(n) * s / of.pa_efficiency.item(n), True, "#0072B2", "#3d9bd6", "////"
    ),
}
"""Activities by name, in the order of a task."""

ON_AIR = [name for name, activity in ACTIVITIES.items() if activity.on_air]
