"""Log-distance path loss, the form of FedTeddi's macro cell (section V-A) and of 3GPP TR 36.814."""

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.radio.laws.law import Law


class LogDistance(Law):
    """A loss at 1 km and a slope per factor of ten in horizontal distance."""

    loss_at_1_km_db: float = Field(ge=0, le=400)
    slope_db_per_decade: float = Field(gt=0, le=200)

    @override
    def loss_db(self, distance_m: ArrayLike, los: ArrayLike = True) -> Floats:
        """Loss(1 km) + slope log10(d / 1 km), in dB; distances above 0 m, one branch for all."""
        distance = np.asarray(distance_m, dtype=np.float64)
        return self.loss_at_1_km_db + self.slope_db_per_decade * np.log10(distance / 1000.0)
