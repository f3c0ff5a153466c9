"""Indoor office, InH, mixed: 3GPP TR 38.901, tables 7.4.1-1 (path loss) and 7.4.2-1 (LOS probability)."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats
from edgesim.base.quantities import Metres
from edgesim.radio.laws.tr_38_901 import Tr38901Law


class IndoorOffice(Tr38901Law):
    """Station at the ceiling, devices on desks; fitted for direct distances of 1 to 150 m."""

    fitted_for: ClassVar[str] = "direct distances of 1 to 150 m"
    sight_decorrelation_m: ClassVar[float] = 10.0

    station_height_m: Metres = Field(3.0, gt=0)
    device_height_m: Metres = Field(1.0, ge=0)
    los_shadowing_std_db: float = Field(3.0, ge=0, le=60)
    nlos_shadowing_std_db: float = Field(8.03, ge=0, le=60)
    los_decorrelation_m: float = Field(10.0, ge=0.1, le=1e4)
    nlos_decorrelation_m: float = Field(6.0, ge=0.1, le=1e4)

    @override
    def los_probability(self, distance_m: ArrayLike) -> Floats:
        """Chance of line of sight at horizontal distances in the mixed office, elementwise."""
        distance = np.asarray(distance_m, dtype=np.float64)
        near = np.exp(-np.maximum(distance - 1.2, 0.0) / 4.7)
        return np.where(distance < 6.5, near, 0.32 * np.exp(-(distance - 6.5) / 32.6))

    @override
    def beyond_fit(self, distance_m: ArrayLike) -> Booleans:
        """Below 1 m or above 150 m from antenna to antenna (table 7.4.1-1), elementwise."""
        direct_m = np.hypot(distance_m, self.station_height_m - self.device_height_m)
        return np.asarray((direct_m < 1.0) | (direct_m > 150.0))

    @override
    def _los_db(self, distance_m: Floats) -> Floats:
        return 32.4 + 17.3 * self._log_direct_m(distance_m) + 20.0 * self._log_carrier_ghz

    @override
    def _nlos_db(self, distance_m: Floats) -> Floats:
        return 38.3 * self._log_direct_m(distance_m) + 17.3 + 24.9 * self._log_carrier_ghz
