"""Random waypoint: from point to uniform point of the disc, each way at a speed of its own, with pauses between."""

import math
from typing import Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.mobility.legs import Legs
from edgesim.mobility.models.motion import Motion, SpeedsAbove0, points_in_disc
from edgesim.mobility.paths import Ground
from edgesim.streams import Streams


class Waypoint(Motion):
    """Draws: streams ``waypoint``, indexed by the leg, ``waypoint-start`` and ``waypoint-ends``, by the trial."""

    speed_mps: SpeedsAbove0 = Field([1.0, 2.0])
    """Least, above 0, and greatest speed; that of each way is uniform between them."""
    pause_s: float = Field(0.0, ge=0, le=1e6)
    """Rest at every waypoint."""
    start: Literal["stationary", "placement"] = "stationary"
    """``stationary``: devices begin by the law of an arbitrary instant, so that no run begins with a transient (Navidi
    and Camp, IEEE TMC 2004); ``placement``: the placement is the first waypoint, and devices set out at once."""

    def paused_share(self, radius_m: float) -> float:
        """Share of its time that a device rests: P / (P + E[L] E[1/v]), with E[L] = 128 R / (45 pi)."""
        least, most = self.speed_mps
        slowness = math.log(most / least) / (most - least) if most > least else 1.0 / least
        return self.pause_s / (self.pause_s + 128.0 * radius_m / (45.0 * math.pi) * slowness)

    @override
    def first_legs(self, ids: Integers, ground: Ground, streams: Streams) -> Legs:
        zero_s = np.zeros(len(ids))
        if self.start == "placement":
            return self._ways(ids, 0, zero_s, ground.x_m[ids], ground.y_m[ids], ground, streams)
        draws = streams.uniform("waypoint-start", ids, count=4)
        rests = draws[:, 0] < self.paused_share(ground.radius_m)
        legs = Legs(zero_s, *np.zeros((5, len(ids))))
        resting, moving = np.flatnonzero(rests), np.flatnonzero(~rests)
        if len(resting):
            points = streams.uniform("waypoint-start", ids[resting], count=2, first_pair=2)
            legs.t1_s[resting] = (1.0 - draws[resting, 1]) * self.pause_s
            legs.x0_m[resting], legs.y0_m[resting] = points_in_disc(points, ground.radius_m)
        from_x_m, from_y_m, to_x_m, to_y_m = _stationary_ends(ids[moving], draws[moving, 3], ground.radius_m, streams)
        gone, (least, most) = draws[moving, 1], self.speed_mps
        speed_mps = least * (most / least) ** draws[moving, 2]
        whole_s = np.hypot(to_x_m - from_x_m, to_y_m - from_y_m) / speed_mps
        legs.t1_s[moving] = (1.0 - gone) * whole_s
        legs.x0_m[moving] = from_x_m + gone * (to_x_m - from_x_m)
        legs.y0_m[moving] = from_y_m + gone * (to_y_m - from_y_m)
        legs.vx_mps[moving] = (to_x_m - from_x_m) / whole_s
        legs.vy_mps[moving] = (to_y_m - from_y_m) / whole_s
        return legs

    @override
    def next_legs(self, ids: Integers, number: Integers, before: Legs, ground: Ground, streams: Streams) -> Legs:
        x_m, y_m = before.at(before.t1_s)
        ways = self._ways(ids, number, before.t1_s, x_m, y_m, ground, streams)
        if self.pause_s == 0:
            return ways
        arrived = np.flatnonzero(~before.rests)
        ways.t1_s[arrived] = before.t1_s[arrived] + self.pause_s
        ways.vx_mps[arrived] = ways.vy_mps[arrived] = 0.0
        return ways

    def _ways(
        self, ids: Integers, number: int | Integers, t_s: Floats, x_m: Floats, y_m: Floats, ground: Ground,
        streams: Streams,
    ) -> Legs:  # fmt: skip
        """Ways from where devices are at ``t_s`` to their next waypoints, [n]."""
        draws = streams.uniform("waypoint", ids, number, 3)
        to_x_m, to_y_m = points_in_disc(draws[:, :2], ground.radius_m)
        speed_mps = self.speed_mps[0] + draws[:, 2] * (self.speed_mps[1] - self.speed_mps[0])
        way_s = np.hypot(to_x_m - x_m, to_y_m - y_m) / speed_mps
        return Legs(t_s, t_s + way_s, x_m, y_m, (to_x_m - x_m) / way_s, (to_y_m - y_m) / way_s)


def _stationary_ends(
    ids: Integers, turns: Floats, radius_m: float, streams: Streams
) -> tuple[Floats, Floats, Floats, Floats]:
    """Ends of the ways on which moving devices are at an arbitrary instant: x, y from and x, y to, [n] each.

    Both are uniform in the disc, and accepted with a probability of their distance over the diameter, since a long way
    is met more often. Uniform ``turns`` [n], which do not change distances, say where the way begins.
    """
    ends, left, trial = np.empty((len(ids), 3)), np.arange(len(ids)), 0
    while len(left):
        draws = streams.uniform("waypoint-ends", ids[left], trial, 4)
        # Squares of distances over the radius, by the law of cosines: points are worked out for accepted ends alone.
        near, far = draws[:, 0], draws[:, 1]
        squared = near + far - 2.0 * np.sqrt(near * far) * np.cos(2.0 * np.pi * draws[:, 2])
        taken = 4.0 * draws[:, 3] ** 2 < squared
        ends[left[taken]] = draws[taken, :3]
        left, trial = left[~taken], trial + 1
    begins, aims = np.column_stack((ends[:, 0], turns)), np.column_stack((ends[:, 1], turns + ends[:, 2]))
    return *points_in_disc(begins, radius_m), *points_in_disc(aims, radius_m)
