"""Urban macro cell, UMa: 3GPP TR 38.901, tables 7.4.1-1 (path loss) and 7.4.2-1 (LOS probability)."""

from numpy.typing import ArrayLike
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Metres
from edgesim.radio.laws.tr_38_901 import StreetLaw, street_los_probability


class UrbanMacro(StreetLaw):
    """Station above the roofs, devices outdoors; fitted for horizontal distances of 10 m to 5 km."""

    station_height_m: Metres = Field(25.0, gt=1)
    device_height_m: float = Field(1.5, ge=1.5, le=13)
    """Above 13 m the LOS probability and h_E have terms of their own, which are not implemented."""
    los_shadowing_std_db: float = Field(4.0, ge=0, le=60)
    nlos_shadowing_std_db: float = Field(6.0, ge=0, le=60)
    los_decorrelation_m: float = Field(37.0, ge=0.1, le=1e4)
    nlos_decorrelation_m: float = Field(50.0, ge=0.1, le=1e4)

    @override
    def los_probability(self, distance_m: ArrayLike) -> Floats:
        """Chance of line of sight at horizontal distances, elementwise."""
        return street_los_probability(distance_m, decay_m=63.0)

    @override
    def _los_db(self, distance_m: Floats) -> Floats:
        return self._two_slopes_db(distance_m, at_1_m_db=28.0, slope_db=22.0, joint_db=9.0)

    @override
    def _nlos_db(self, distance_m: Floats) -> Floats:
        slope_db = 39.08 * self._log_direct_m(distance_m)
        return 13.54 + slope_db + 20.0 * self._log_carrier_ghz - 0.6 * (self.device_height_m - 1.5)
