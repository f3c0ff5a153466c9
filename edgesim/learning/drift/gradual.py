"""A gradual drift: every device's mix of classes turns little by little into another one."""

from functools import partial
from typing import Self

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from edgesim.base.quantities import Seconds
from edgesim.learning.drift import mixes
from edgesim.learning.drift.holdings import Holdings
from edgesim.learning.drift.law import Setting, When
from edgesim.learning.drift.mixes import Mixes
from edgesim.learning.drift.moving import Moving, PooledLaw
from edgesim.learning.drift.pools import make_fleet


class Gradual(PooledLaw):
    """(1 - a) A + a B, a rising from 0 at ``start_s`` to 1 at ``end_s`` in a line."""

    start_s: Seconds = Field(ge=0)
    """End of mix A alone."""
    end_s: Seconds = Field(gt=0)
    """Start of mix B alone."""
    before: Mixes
    """Mix A."""
    after: Mixes
    """Mix B."""

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.end_s <= self.start_s:
            raise ValueError(f"end_s ({self.end_s:g}) must be above start_s ({self.start_s:g})")
        return self

    @override
    def make(self, setting: Setting) -> Moving:
        fleet = make_fleet(setting, self.pool)
        a, b = mixes.as_rows(self.before, fleet, "drift.before"), mixes.as_rows(self.after, fleet, "drift.after")
        mixes.need(fleet, a, b)
        # Each device's own A and B, where the numbers of mixes differ.
        groups = np.arange(np.lcm(len(a), len(b)))
        a, b = a[groups % len(a)], b[groups % len(b)]

        def share(when: When) -> float:
            return min(1.0, max(0.0, (when.t_s - self.start_s) / (self.end_s - self.start_s)))

        def deal(share: float) -> Holdings:
            seen = np.concatenate([a, b]) if share > 0 else a
            return mixes.hold(fleet, (1 - share) * a + share * b, seen)

        return Moving(share, deal, partial(np.array, [fleet.size]), held_out=fleet.held_out)
