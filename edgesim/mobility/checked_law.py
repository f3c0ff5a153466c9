"""Legs of a law of motion of one's own, each checked when it is drawn: a wrong one would only show as a wrong gain."""

from dataclasses import dataclass

import numpy as np

from edgesim.base.arrays import Booleans, Integers
from edgesim.base.errors import EdgesimError
from edgesim.mobility.legs import Legs
from edgesim.mobility.paths import Ground
from edgesim.mobility.walk import LegLaw
from edgesim.streams import Streams

_ROUNDED = 1 + 1e-6
"""Share of the radius that a leg may reach, since ends are rounded."""


@dataclass(frozen=True)
class CheckedLaw:
    """The legs of another law; raises `EdgesimError` that names its model for those that nobody can walk."""

    law: LegLaw
    model: str

    def first_legs(self, ids: Integers, ground: Ground, streams: Streams) -> Legs:
        """The legs of number 0 of some devices, which begin at 0 s, [n]."""
        return self._checked("first_legs", self.law.first_legs(ids, ground, streams), ids, ground)

    def next_legs(self, ids: Integers, number: Integers, before: Legs, ground: Ground, streams: Streams) -> Legs:
        """The legs of a ``number`` above 0 of some devices, which begin where and when those ``before`` end, [n]."""
        return self._checked("next_legs", self.law.next_legs(ids, number, before, ground, streams), ids, ground)

    def _checked(self, method: str, legs: Legs, ids: Integers, ground: Ground) -> Legs:
        where = f"mobility.model {self.model!r}: {method}"
        shapes = {np.shape(column) for column in legs.columns} if isinstance(legs, Legs) else set()
        if shapes != {ids.shape}:
            got = f"columns of {' and '.join(map(str, sorted(shapes)))}" if shapes else type(legs).__name__
            raise EdgesimError(f"{where} returned {got} for {len(ids)} devices, expected Legs of [n]", "mobility.model")
        numbers = np.array([legs.t0_s, legs.x0_m, legs.y0_m, legs.vx_mps, legs.vy_mps])
        self._need(np.isfinite(numbers).all(axis=0), f"{where}: a leg's begin or velocity is not finite", ids)
        self._need(legs.t1_s > legs.t0_s, f"{where}: a leg does not end behind its begin", ids)
        ends = np.isfinite(legs.t1_s)
        self._need(ends | legs.rests, f"{where}: a leg without an end is not at rest", ids)
        for x_m, y_m in (legs.at(legs.t0_s), legs.at(np.where(ends, legs.t1_s, legs.t0_s))):
            inside = np.hypot(x_m, y_m) <= ground.radius_m * _ROUNDED
            self._need(inside, f"{where}: a leg leaves the disc of {ground.radius_m:g} m (devices.radius_m)", ids)
        return legs

    def _need(self, right: Booleans, message: str, ids: Integers) -> None:
        if not right.all():
            raise EdgesimError(f"{message}, that of device {ids[np.argmin(right)]}", "mobility.model")
