"""Free-space path loss (Friis, Proc. IRE 1946; ITU-R P.525-4)."""

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Metres
from edgesim.radio.laws.law import SPEED_OF_LIGHT_M_PER_S, Law


class FreeSpace(Law):
    """Carrier frequency and the antenna heights, which give the direct distance from the horizontal one."""

    carrier_hz: float = Field(ge=1e6, le=1e12)
    station_height_m: Metres = Field(ge=0)
    device_height_m: Metres = Field(ge=0)

    @override
    def loss_db(self, distance_m: ArrayLike, los: ArrayLike = True) -> Floats:
        """20 log10(4 pi d_3D f / c), in dB; distances above 0 m, always in sight."""
        direct_m = np.hypot(distance_m, self.station_height_m - self.device_height_m)
        return 20.0 * np.log10(4.0 * np.pi * direct_m * self.carrier_hz / SPEED_OF_LIGHT_M_PER_S)
