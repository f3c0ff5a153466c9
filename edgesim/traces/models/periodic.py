"""Each device is available for a fixed time in every period, at its own phase."""

from typing import ClassVar

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.quantities import Seconds
from edgesim.streams import Streams
from edgesim.traces.intervals import Intervals, cycles
from edgesim.traces.models.options import DAY_S, Repeated


class Periodic(Repeated):
    """Draws: stream ``availability-phase``, uniform over the period."""

    at_most: ClassVar[tuple[tuple[str, str], ...]] = (("on_s", "period_s"),)

    period_s: Seconds = Field(DAY_S, ge=1e-6)
    """From one time that a device appears to the next."""
    on_s: Seconds = Field(DAY_S / 3, ge=1e-6)
    """Time that a device is available in each period."""

    @override
    def intervals(self, device_count: int, streams: Streams) -> Intervals:
        """One period of every device; available time that passes its end continues at its start."""
        start_s = self.period_s * streams.uniform("availability-phase", np.arange(device_count, dtype=np.int64))
        return cycles(start_s, self.on_s, self.period_s)
