"""What a path-loss law is: a checked set of parameters and a function from distance to decibels."""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgesim.config import Section


class Law(Section):
    """Parameters of a path-loss law, the keys of ``[path_loss]`` in an environment file."""

    @abstractmethod
    def loss_db(self, distance_m: ArrayLike) -> NDArray[np.float64]:
        """Path loss in dB at horizontal distances above 0 m, elementwise."""
