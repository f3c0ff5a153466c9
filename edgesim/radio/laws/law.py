"""The base class of path-loss laws: a checked set of parameters and a function from distance to decibels."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Booleans, Floats
from edgesim.config import Section

SPEED_OF_LIGHT_M_PER_S = 299_792_458.0


class Law(Section):
    """Parameters of a path-loss law, the keys of ``[path_loss]`` in an environment file.

    A law of one branch implements `loss_db` alone; a law that distinguishes line of sight (LOS) from obstruction (NLOS)
    implements `los_probability` and `shadowing_std_db` as well.
    """

    fitted_for: ClassVar[str] = "any distance"
    """The distances that the law was fitted for."""
    sight_decorrelation_m: ClassVar[float] = 50.0
    """Distance over which line of sight changes (3GPP TR 38.901, table 7.6.3.1-2)."""

    @abstractmethod
    def loss_db(self, distance_m: ArrayLike, los: ArrayLike = True) -> Floats:
        """Path loss in dB at horizontal distances above 0 m, in line of sight where ``los`` is true; they broadcast."""

    def los_probability(self, distance_m: ArrayLike) -> Floats:
        """Chance of line of sight at horizontal distances, elementwise: 1 for a law of one branch."""
        return np.ones(np.shape(distance_m))

    def beyond_fit(self, distance_m: ArrayLike) -> Booleans:
        """Whether horizontal distances lie outside the range that the law was fitted for, elementwise."""
        return np.zeros(np.shape(distance_m), dtype=bool)

    def shadowing_std_db(self, los: ArrayLike) -> Floats | None:
        """The law's own shadowing deviation in dB, elementwise; None if the environment file has to state it."""
        return None

    def decorrelation_m(self, los: ArrayLike) -> Floats | None:
        """The law's own correlation distances of shadowing in m, elementwise; None if the environment states one."""
        return None
