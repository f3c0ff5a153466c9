"""Random direction: a uniform angle for a while, mirrored at the disc's edge.

Nain, Towsley, Liu and Liu, INFOCOM 2005.
"""

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.mobility.legs import Legs
from edgesim.mobility.models.motion import Motion, Speeds
from edgesim.mobility.paths import Ground
from edgesim.streams import Streams

_AT_EDGE = 1.0 - 1e-6
"""Share of the radius from which on the end of a leg counts as the edge, since times are rounded."""
_STEEPEST = 1e-6
"""Least sine of the angle at which a device leaves the edge: one that grazes it would have legs without end."""


class Direction(Motion):
    """Draws: stream ``direction``, indexed by the leg. Devices start at their placement, and stay spread uniformly."""

    speed_mps: Speeds = Field([1.0, 2.0])
    """Least and greatest speed; that of each turn is uniform between them."""
    turn_s: float = Field(60.0, ge=1e-3, le=1e6)
    """Mean time between turns, exponential."""

    @override
    def first_legs(self, ids: Integers, ground: Ground, streams: Streams) -> Legs:
        draws = streams.uniform("direction", ids, 0, 3)
        vx_mps, vy_mps = self._velocity(draws)
        return self._legs(np.zeros(len(ids)), ground.x_m[ids], ground.y_m[ids], vx_mps, vy_mps, draws, ground)

    @override
    def next_legs(self, ids: Integers, number: Integers, before: Legs, ground: Ground, streams: Streams) -> Legs:
        # The exponential law forgets: what the edge leaves of a turn is as long as a new one.
        draws = streams.uniform("direction", ids, number, 3)
        vx_mps, vy_mps = self._velocity(draws)
        x_m, y_m = before.at(before.t1_s)
        at_edge = np.flatnonzero(np.hypot(x_m, y_m) >= _AT_EDGE * ground.radius_m)
        vx_mps[at_edge], vy_mps[at_edge] = _mirrored(
            x_m[at_edge], y_m[at_edge], before.vx_mps[at_edge], before.vy_mps[at_edge]
        )
        return self._legs(before.t1_s, x_m, y_m, vx_mps, vy_mps, draws, ground)

    def _velocity(self, draws: Floats) -> tuple[Floats, Floats]:
        """Velocities of new turns, [n] each."""
        angle = 2.0 * np.pi * draws[:, 0]
        speed_mps = self.speed_mps[0] + draws[:, 1] * (self.speed_mps[1] - self.speed_mps[0])
        return speed_mps * np.cos(angle), speed_mps * np.sin(angle)

    def _legs(
        self, t_s: Floats, x_m: Floats, y_m: Floats, vx_mps: Floats, vy_mps: Floats, draws: Floats, ground: Ground
    ) -> Legs:
        """Legs up to the next turn or the edge, [n]."""
        turn_s = -self.turn_s * np.log(draws[:, 2])
        edge_s = _until_edge_s(x_m, y_m, vx_mps, vy_mps, ground.radius_m)
        return Legs(t_s, t_s + np.minimum(turn_s, edge_s), x_m, y_m, vx_mps, vy_mps)


def _mirrored(x_m: Floats, y_m: Floats, vx_mps: Floats, vy_mps: Floats) -> tuple[Floats, Floats]:
    """Velocities after a specular reflection at the edge, on which the positions lie, [n] each."""
    distance_m, speed_mps = np.hypot(x_m, y_m), np.hypot(vx_mps, vy_mps)
    out_x, out_y = x_m / distance_m, y_m / distance_m
    outward_mps = vx_mps * out_x + vy_mps * out_y
    turned_mps = outward_mps + np.maximum(outward_mps, _STEEPEST * speed_mps)
    return vx_mps - turned_mps * out_x, vy_mps - turned_mps * out_y


def _until_edge_s(x_m: Floats, y_m: Floats, vx_mps: Floats, vy_mps: Floats, radius_m: float) -> Floats:
    """Seconds until a straight way reaches the edge, [n]; inf at rest."""
    squared, along = vx_mps**2 + vy_mps**2, x_m * vx_mps + y_m * vy_mps
    root = np.sqrt(np.maximum(along**2 + squared * (radius_m**2 - x_m**2 - y_m**2), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(squared > 0, np.maximum((root - along) / squared, 0.0), np.inf)
