"""Slow ones rest: devices that need long for a sample join less often."""

import numpy as np
from pydantic import Field

from edgesim.arrays import Floats
from edgesim.joining.law import Asked, Fleet, Law


class SlowOnesRest(Law):
    """Options of the law, keys of ``[joining]``."""

    least: float = Field(0.2, ge=0, le=1)
    """Chance of the slowest device; the fastest always joins."""

    def chances(self, asked: Asked, fleet: Fleet) -> Floats:
        """How likely each of the devices that are asked joins, [n]; the law draws nothing itself.

        ``asked`` has the devices, the round, and how accurate each was where the law measures that; ``fleet`` what is
        known of all devices before the run.
        """
        times_s = fleet.s_per_sample
        place = (times_s[asked.ids] - times_s.min()) / max(float(np.ptp(times_s)), 1e-300)
        return np.asarray(1 - (1 - self.least) * place)
