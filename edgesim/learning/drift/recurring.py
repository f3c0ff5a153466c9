"""A drift that comes back: mixes of classes one after another, each for its time, and again from the first."""

from functools import partial
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator
from typing_extensions import override

from edgesim.base.quantities import Seconds
from edgesim.learning.drift import mixes
from edgesim.learning.drift.holdings import Holdings
from edgesim.learning.drift.law import Setting, When
from edgesim.learning.drift.mixes import Mixes
from edgesim.learning.drift.moving import Moving, PooledLaw, aliases
from edgesim.learning.drift.pools import make_fleet


class Recurring(PooledLaw):
    """Listed mixes in turn, each for its duration, and again from the first."""

    mixes: list[Mixes] = Field(min_length=2)
    """The mixes in their order, each one for all devices or a list of several: device n has mix n modulo their
    number."""
    durations_s: list[Annotated[Seconds, Field(gt=0)]]
    """Duration of each mix."""

    @model_validator(mode="after")
    def _each_lasts(self) -> Self:
        if len(self.durations_s) != len(self.mixes):
            raise ValueError(
                f"durations_s: expected one for each of {len(self.mixes)} mixes (got {len(self.durations_s)})"
            )
        return self

    @override
    def make(self, setting: Setting) -> Moving:
        fleet = make_fleet(setting, self.pool)
        rows = [mixes.as_rows(mix, fleet, f"drift.mixes[{place}]") for place, mix in enumerate(self.mixes)]
        mixes.need(fleet, *rows)
        ends_s = np.cumsum(self.durations_s)

        def place(when: When) -> tuple[int, int]:
            """Number of the mix that holds, from 0, and number of mixes that have held until now."""
            cycle, within_s = divmod(when.t_s * (1 + mixes.SLACK), float(ends_s[-1]))
            mix = int(np.searchsorted(ends_s, within_s, "right"))
            return mix, len(rows) if cycle else mix + 1

        def deal(place: tuple[int, int]) -> Holdings:
            mix, past = place
            return mixes.hold(fleet, rows[mix], np.concatenate(rows[:past]))

        warning = aliases(fleet.round_s / float(ends_s[-1]))
        return Moving(place, deal, partial(np.array, [fleet.size]), warning, held_out=fleet.held_out)
