"""Two slopes: path loss that grows slowly up to a breakpoint and fast behind it."""

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from edgesim.arrays import Floats
from edgesim.radio.laws.law import Law


class TwoSlopes(Law):
    """Keys of ``[path_loss]`` in a channel file.

    Log-distance laws on both sides of a breakpoint, as in street canyons with line of sight.
    """

    loss_at_1_m_db: float = Field(ge=0, le=200)
    near_slope_db_per_decade: float = Field(20.0, gt=0, le=200)
    far_slope_db_per_decade: float = Field(40.0, gt=0, le=200)
    breakpoint_m: float = Field(gt=1, le=1e6)

    def loss_db(self, distance_m: ArrayLike, los: ArrayLike = True) -> Floats:
        """Path loss in dB at horizontal distances above 0 m; one branch, so that ``los`` changes nothing."""
        distance = np.asarray(distance_m, dtype=np.float64)
        near = np.log10(np.minimum(distance, self.breakpoint_m))
        far = np.log10(np.maximum(distance / self.breakpoint_m, 1.0))
        return self.loss_at_1_m_db + self.near_slope_db_per_decade * near + self.far_slope_db_per_decade * far
