"""Urban micro cell in a street canyon, UMi: 3GPP TR 38.901, tables 7.4.1-1 and 7.4.2-1."""

from numpy.typing import ArrayLike
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.quantities import Metres
from edgesim.radio.laws.tr_38_901 import StreetLaw, street_los_probability


class UrbanMicroStreetCanyon(StreetLaw):
    """Station below the roofs, devices outdoors; fitted for horizontal distances of 10 m to 5 km."""

    station_height_m: Metres = Field(10.0, gt=1)
    device_height_m: float = Field(1.5, ge=1.5, le=22.5)
    los_shadowing_std_db: float = Field(4.0, ge=0, le=60)
    nlos_shadowing_std_db: float = Field(7.82, ge=0, le=60)
    los_decorrelation_m: float = Field(10.0, ge=0.1, le=1e4)
    nlos_decorrelation_m: float = Field(13.0, ge=0.1, le=1e4)

    @override
    def los_probability(self, distance_m: ArrayLike) -> Floats:
        """Chance of line of sight at horizontal distances, elementwise."""
        return street_los_probability(distance_m, decay_m=36.0)

    @override
    def _los_db(self, distance_m: Floats) -> Floats:
        return self._two_slopes_db(distance_m, at_1_m_db=32.4, slope_db=21.0, joint_db=9.5)

    @override
    def _nlos_db(self, distance_m: Floats) -> Floats:
        slope_db = 35.3 * self._log_direct_m(distance_m)
        return slope_db + 22.4 + 21.3 * self._log_carrier_ghz - 0.3 * (self.device_height_m - 1.5)
