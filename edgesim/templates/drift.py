"""Seasons: of all classes each device holds a few neighbouring ones, which move on after some rounds."""

import numpy as np
from pydantic import Field

from edgesim.arrays import Integers
from edgesim.errors import EdgesimError
from edgesim.learning.drift import mixes
from edgesim.learning.drift.holdings import Holdings
from edgesim.learning.drift.law import Law, Setting, When
from edgesim.learning.drift.moving import Moving, make_fleet
from edgesim.quantities import Count


class Seasons(Law):
    """Options of the law, keys of ``[drift]``."""

    classes: Count = Field(3, ge=1)
    """Classes that a device holds at a time."""
    every: Count = Field(10, ge=1)
    """Rounds until the first of them is given up for the next one."""

    def make(self, setting: Setting) -> Moving:
        """The data of a run. Devices share one pool, and what they hold depends on the round alone, not on draws."""
        fleet = make_fleet(setting, "shared")
        if self.classes > fleet.class_count:
            raise EdgesimError(
                f"drift.classes: {self.classes} is more than the {fleet.class_count} classes of the data"
            )

        def season(when: When) -> int:
            return max(when.round - 1, 0) // self.every

        def deal(season: int) -> Holdings:
            held = (season + np.arange(self.classes)) % fleet.class_count
            mix = np.zeros((1, fleet.class_count))
            mix[0, held] = 1 / self.classes
            return mixes.hold(fleet, mix, seen=np.ones((1, fleet.class_count)))

        def sizes() -> Integers:
            return np.array([fleet.size])

        return Moving(season, deal, sizes, in_seconds=False, held_out=fleet.held_out)
