"""The common part of the path-loss laws of 3GPP TR 38.901, tables 7.4.1-1 and 7.4.2-1."""

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats
from edgesim.base.quantities import Metres
from edgesim.radio.laws.law import SPEED_OF_LIGHT_M_PER_S, Law

_EFFECTIVE_ENVIRONMENT_HEIGHT_M = 1.0
"""h_E of the breakpoint: 1 m in UMi, and in UMa for devices up to 13 m (table 7.4.1-1, note 1)."""


class Tr38901Law(Law):
    """A law with an LOS and an NLOS branch; each scenario adds heights and its table's shadowing deviations."""

    carrier_hz: float = Field(ge=0.5e9, le=100e9)
    """The range that the report covers; its formulas take it in GHz."""
    station_height_m: Metres = Field(ge=0)
    device_height_m: Metres = Field(ge=0)
    los_shadowing_std_db: float = Field(ge=0, le=60)
    nlos_shadowing_std_db: float = Field(ge=0, le=60)
    los_decorrelation_m: float = Field(ge=0.1, le=1e4)
    """Distance over which the correlation of shadowing falls to 1/e, in the horizontal plane (table 7.5-6)."""
    nlos_decorrelation_m: float = Field(ge=0.1, le=1e4)

    @abstractmethod
    def _los_db(self, distance_m: Floats) -> Floats:
        """Path loss in sight."""

    @abstractmethod
    def _nlos_db(self, distance_m: Floats) -> Floats:
        """PL' of the table: path loss out of sight before it is bounded by that in sight."""

    @override
    def loss_db(self, distance_m: ArrayLike, los: ArrayLike = True) -> Floats:
        """The LOS branch where ``los`` holds, else max(LOS, PL'), in dB; horizontal distances above 0 m."""
        distance = np.asarray(distance_m, dtype=np.float64)
        los_db = self._los_db(distance)
        return np.where(los, los_db, np.maximum(los_db, self._nlos_db(distance)))

    @override
    def shadowing_std_db(self, los: ArrayLike) -> Floats:
        """Sigma_SF of each branch, in dB, elementwise."""
        return np.where(los, self.los_shadowing_std_db, self.nlos_shadowing_std_db)

    @override
    def decorrelation_m(self, los: ArrayLike) -> Floats:
        """The correlation distance of each branch, in m, elementwise."""
        return np.where(los, self.los_decorrelation_m, self.nlos_decorrelation_m)

    @property
    def _log_carrier_ghz(self) -> float:
        """log10 of f in GHz."""
        return math.log10(self.carrier_hz / 1e9)

    def _log_direct_m(self, distance_m: Floats) -> Floats:
        """log10 of d_3D in m."""
        return np.asarray(np.log10(np.hypot(distance_m, self.station_height_m - self.device_height_m)))


class StreetLaw(Tr38901Law):
    """The outdoor laws, UMa and UMi: a steeper slope beyond a breakpoint, and line of sight rarer with distance."""

    fitted_for: ClassVar[str] = "horizontal distances of 10 m to 5 km"

    @override
    def beyond_fit(self, distance_m: ArrayLike) -> Booleans:
        """Below 10 m or above 5 km (table 7.4.1-1), elementwise."""
        distance = np.asarray(distance_m, dtype=np.float64)
        return (distance < 10.0) | (distance > 5000.0)

    @property
    def breakpoint_m(self) -> float:
        """d'_BP = 4 (h_BS - h_E)(h_UT - h_E) f / c, a horizontal distance in m (table 7.4.1-1, note 1)."""
        above_m = self.station_height_m - _EFFECTIVE_ENVIRONMENT_HEIGHT_M
        device_above_m = self.device_height_m - _EFFECTIVE_ENVIRONMENT_HEIGHT_M
        return 4.0 * above_m * device_above_m * self.carrier_hz / SPEED_OF_LIGHT_M_PER_S

    def _two_slopes_db(self, distance_m: Floats, at_1_m_db: float, slope_db: float, joint_db: float) -> Floats:
        """PL_1 up to the breakpoint, PL_2 with 40 dB per decade beyond; ``joint_db`` (9 or 9.5) makes them meet."""
        log_direct = self._log_direct_m(distance_m)
        common_db = at_1_m_db + 20.0 * self._log_carrier_ghz
        height_m = self.station_height_m - self.device_height_m
        beyond_db = 40.0 * log_direct - joint_db * np.log10(self.breakpoint_m**2 + height_m**2)
        return common_db + np.where(distance_m <= self.breakpoint_m, slope_db * log_direct, beyond_db)


def street_los_probability(distance_m: ArrayLike, decay_m: float) -> Floats:
    """1 up to 18 m, then 18/d + exp(-d/decay)(1 - 18/d): UMi and, for devices up to 13 m, UMa (table 7.4.2-1)."""
    # The formula is 1 at 18 m, so distances below 18 m are set to 18 m.
    distance = np.maximum(distance_m, 18.0)
    return np.asarray(18.0 / distance + np.exp(-distance / decay_m) * (1.0 - 18.0 / distance))
