"""Manhattan: devices drive along the streets of a grid, and may turn at each crossing, as in ETSI TR 101 112."""

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.mobility.legs import Legs
from edgesim.mobility.models.motion import Motion, SpeedsAbove0
from edgesim.mobility.paths import Ground, Paths
from edgesim.streams import Streams

_EAST_STEPS, _NORTH_STEPS = np.array([1, 0, -1, 0]), np.array([0, 1, 0, -1])
"""Steps of the headings east, north, west and south."""
_TURNS = np.array([0, 1, 3])
"""Change of heading straight on, to the left and to the right."""
_SHARES = np.array([0.5, 0.25, 0.25])


class Manhattan(Motion):
    """Draws: stream ``manhattan``, indexed by the leg.

    Streets lie at the multiples of ``block_m``, as far as the square around the disc reaches; devices start at the
    point of a street that is nearest to their placement.
    """

    speed_mps: SpeedsAbove0 = Field([1.0, 2.0])
    """Least, above 0, and greatest speed; that of each block is uniform between them."""
    block_m: float = Field(100.0, ge=1.0, le=1e4)
    """Distance between two streets, at most ``devices.radius_m``."""

    @override
    def make(self, ground: Ground, streams: Streams) -> Paths:
        if self.block_m > ground.radius_m:
            raise EdgesimError(
                f"mobility.block_m: expected at most devices.radius_m, {ground.radius_m:g} m, so that there are "
                f"streets beside the middle ones (got {self.block_m:g})",
                "mobility.block_m",
            )
        return super().make(ground, streams)

    @override
    def first_legs(self, ids: Integers, ground: Ground, streams: Streams) -> Legs:
        draws = streams.uniform("manhattan", ids, 0, 2)
        along, across, eastward = self._on_streets(ground.x_m[ids], ground.y_m[ids], ground)
        forward = np.where(np.abs(along) < self._last(ground), draws[:, 0] < 0.5, along < 0)
        heading = np.where(eastward, 0, 1) + np.where(forward, 0, 2)
        ahead = np.where(forward, np.floor(along) + 1, np.ceil(along) - 1)
        x, y = (np.where(eastward, along, across), np.where(eastward, across, along))
        return self._legs(np.zeros(len(ids)), x, y, heading, np.abs(ahead - along), draws[:, 1])

    @override
    def next_legs(self, ids: Integers, number: Integers, before: Legs, ground: Ground, streams: Streams) -> Legs:
        draws = streams.uniform("manhattan", ids, number, 2)
        # Positions are rounded; the crossing is exact.
        x, y = (np.rint(at_m / self.block_m) for at_m in before.at(before.t1_s))
        heading = np.where(before.vy_mps == 0, 1 - np.sign(before.vx_mps), 2 - np.sign(before.vy_mps)).astype(np.int64)
        choices = (heading[:, None] + _TURNS) % 4
        to_x, to_y = x[:, None] + _EAST_STEPS[choices], y[:, None] + _NORTH_STEPS[choices]
        open_ = np.maximum(np.abs(to_x), np.abs(to_y)) <= self._last(ground)
        inner = open_.all(axis=1, keepdims=True)
        shares = np.where(inner, _SHARES, open_ / np.count_nonzero(open_, axis=1, keepdims=True))
        taken = np.count_nonzero(draws[:, :1] >= np.cumsum(shares, axis=1), axis=1)
        heading = choices[np.arange(len(ids)), taken]
        return self._legs(before.t1_s, x, y, heading, np.ones(len(ids)), draws[:, 1])

    def _last(self, ground: Ground) -> int:
        """Number of the outermost streets on either side of the middle ones."""
        return int(ground.radius_m / self.block_m)

    def _on_streets(self, x_m: Floats, y_m: Floats, ground: Ground) -> tuple[Floats, Floats, Booleans]:
        """Nearest points of streets to places, [n]: along the street and across it, in blocks, and if it runs east.

        Of two streets as near the one that runs east is taken.
        """
        last, places = self._last(ground), np.stack((x_m, y_m)) / self.block_m
        within, streets = np.clip(places, -last, last), np.clip(np.rint(places), -last, last)
        off = np.hypot(within - places, (streets - places)[::-1])
        eastward = off[0] <= off[1]
        along, across = (np.where(eastward, east, north) for east, north in (within, streets[::-1]))
        return along, across, eastward

    def _legs(self, t_s: Floats, x: Floats, y: Floats, heading: Integers, blocks: Floats, draws: Floats) -> Legs:
        """Legs of a length in ``blocks`` from places in blocks, at speeds by uniform draws, [n]."""
        speed_mps = self.speed_mps[0] + draws * (self.speed_mps[1] - self.speed_mps[0])
        vx_mps, vy_mps = speed_mps * _EAST_STEPS[heading], speed_mps * _NORTH_STEPS[heading]
        return Legs(t_s, t_s + blocks * self.block_m / speed_mps, x * self.block_m, y * self.block_m, vx_mps, vy_mps)
