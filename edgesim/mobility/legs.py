"""Legs: straight stretches of devices' paths at constant velocity, or pauses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers

Instants = float | Floats
"""One instant for all, or one for each, [n], in s."""


@dataclass(frozen=True, eq=False)
class Legs:
    """Some legs, one row each, [n]; a leg lasts from ``t0_s`` to just before ``t1_s``.

    Legs have a velocity in the place of an end, so that a mirrored leg keeps its speed to the last bits and a pause may
    be without end.
    """

    t0_s: Floats
    t1_s: Floats
    """End; inf only for a leg at rest."""
    x0_m: Floats
    y0_m: Floats
    vx_mps: Floats
    vy_mps: Floats

    def __len__(self) -> int:
        return len(self.t0_s)

    def at(self, t_s: Instants) -> tuple[Floats, Floats]:
        """Positions (x_m, y_m) at finite instants, [n] or one for all legs."""
        since_s = t_s - self.t0_s
        return self.x0_m + self.vx_mps * since_s, self.y0_m + self.vy_mps * since_s

    @property
    def rests(self) -> Booleans:
        """Whether each leg is a pause, [n]."""
        return np.asarray((self.vx_mps == 0.0) & (self.vy_mps == 0.0))

    def rows(self, rows: Integers) -> Self:
        """Some of the legs, in the order of ``rows``."""
        return type(self)(*(column[rows] for column in self.columns))

    @property
    def columns(self) -> tuple[Floats, ...]:
        """The fields, [n] each."""
        return self.t0_s, self.t1_s, self.x0_m, self.y0_m, self.vx_mps, self.vy_mps


def joined(parts: Sequence[Legs]) -> Legs:
    """Legs of several parts, one after another."""
    return Legs(*map(np.concatenate, zip(*(part.columns for part in parts), strict=True)))
