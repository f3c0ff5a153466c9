"""A sudden drift: at an instant every device's mix of classes becomes another one."""

from functools import partial

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.quantities import Seconds
from edgesim.learning.drift import mixes
from edgesim.learning.drift.holdings import Holdings
from edgesim.learning.drift.law import Setting
from edgesim.learning.drift.mixes import Mixes
from edgesim.learning.drift.moving import Moving, PooledLaw
from edgesim.learning.drift.pools import make_fleet


class Swap(PooledLaw):
    """Mix A before ``t_s``, and mix B from then on."""

    t_s: Seconds = Field(gt=0)
    """Instant at which mix B replaces mix A."""
    before: Mixes
    """Mix A."""
    after: Mixes
    """Mix B."""

    @override
    def make(self, setting: Setting) -> Moving:
        fleet = make_fleet(setting, self.pool)
        a, b = mixes.as_rows(self.before, fleet, "drift.before"), mixes.as_rows(self.after, fleet, "drift.after")
        mixes.need(fleet, a, b)
        swap_s = self.t_s * (1 - mixes.SLACK)

        def deal(is_over: bool) -> Holdings:
            return mixes.hold(fleet, b, np.concatenate([a, b])) if is_over else mixes.hold(fleet, a, a)

        return Moving(lambda when: when.t_s >= swap_s, deal, partial(np.array, [fleet.size]), held_out=fleet.held_out)
