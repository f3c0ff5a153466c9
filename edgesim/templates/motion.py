"""Visits: devices go from their placement to a random place and back, again and again."""

import numpy as np
from pydantic import Field

from edgesim.arrays import Floats, Integers
from edgesim.mobility.legs import Legs
from edgesim.mobility.models.motion import Motion, points_in_disc
from edgesim.mobility.paths import Ground
from edgesim.quantities import Seconds
from edgesim.streams import Streams


class Visits(Motion):
    """Options of the model, keys of ``[mobility]``."""

    way_s: Seconds = Field(120.0, ge=1e-3)
    """Time of each way, there and back."""

    def first_legs(self, ids: Integers, ground: Ground, streams: Streams) -> Legs:
        """The first leg of each device [n], which begins at 0 s."""
        return self._there(ids, 0, np.zeros(len(ids)), ground.x_m[ids], ground.y_m[ids], ground, streams)

    def next_legs(self, ids: Integers, number: Integers, before: Legs, ground: Ground, streams: Streams) -> Legs:
        """The leg of each device [n] after the one before it; draws by device and number of the leg alone."""
        x_m, y_m = before.at(before.t1_s)
        legs = self._there(ids, number, before.t1_s, x_m, y_m, ground, streams)
        back = np.flatnonzero(number % 2 == 1)
        legs.vx_mps[back], legs.vy_mps[back] = -before.vx_mps[back], -before.vy_mps[back]
        return legs

    def _there(
        self, ids: Integers, number: int | Integers, t_s: Floats, x_m: Floats, y_m: Floats, ground: Ground,
        streams: Streams,
    ) -> Legs:  # fmt: skip
        to_x_m, to_y_m = points_in_disc(streams.uniform("visits", ids, number, 2), ground.radius_m)
        return Legs(t_s, t_s + self.way_s, x_m, y_m, (to_x_m - x_m) / self.way_s, (to_y_m - y_m) / self.way_s)
