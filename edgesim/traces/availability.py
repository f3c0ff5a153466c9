"""Who is available when: one protocol for all models, whose answers depend on no earlier question.

Answers are exact: at an instant that is answered, what was asked for holds, and at no instant of the clock before it.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from edgesim.arrays import Booleans, Floats, Integers


class Availability(Protocol):
    """A availability model; device ids are [n], instants seconds on the run's clock, a scalar or [n]."""

    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """Whether each device is available at an instant, [n]."""

    def available_until(self, ids: Integers, t_s: ArrayLike, horizon_s: float = np.inf) -> Floats:
        """Instant at which each device's current available stretch ends, [n].

        ``inf`` where it lasts to the instant ``horizon_s`` or longer, ``t_s`` itself where not available.
        """

    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """First instant >= ``t_s`` at which each device is available, [n]; inf where that never comes."""

    def next_time_with(self, count: int, t_s: float) -> float:
        """First instant >= ``t_s`` with at least ``count`` devices available; inf if there is none."""

    def next_change(self, t_s: float) -> float:
        """First instant > ``t_s`` at which any device may come or leave; inf if none is known."""
