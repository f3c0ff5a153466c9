"""The interface of all availability models. An answer never depends on earlier calls.

Answers are exact: a returned instant is the first one of the floating-point clock at which the condition holds.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Booleans, Floats, Integers


class Availability(Protocol):
    """An availability model; device ids are [n], instants seconds on the run's clock, a scalar or [n]."""

    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """Whether each device is available at an instant, [n]."""

    def available_until(self, ids: Integers, t_s: ArrayLike, horizon_s: float = np.inf) -> Floats:
        """Instant at which each device's current available stretch ends, [n].

        ``inf`` if it lasts to the instant ``horizon_s`` or longer, ``t_s`` if the device is not available.
        """

    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """First instant >= ``t_s`` at which each device is available, [n]; inf if there is none."""

    def next_time_with(self, count: int, t_s: float) -> float:
        """First instant >= ``t_s`` with at least ``count`` devices available; inf if there is none."""

    def next_change(self, t_s: float) -> float:
        """First instant > ``t_s`` at which any device may become available or unavailable; inf if none is known."""
