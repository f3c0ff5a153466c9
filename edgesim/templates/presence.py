"""Shifts: devices are there in turns of several slots, one group after another."""

from collections.abc import Callable

import numpy as np
from pydantic import Field

from edgesim.arrays import Booleans, Integers
from edgesim.quantities import Count
from edgesim.streams import Streams
from edgesim.traces.models.options import Slotted


class Shifts(Slotted):
    """Options of the model, keys of ``[availability]``; `Slotted` adds what a slot is, a round or so many seconds."""

    groups: Count = Field(2, ge=1)
    """Device k belongs to group k mod ``groups``."""
    length: Count = Field(3, ge=1)
    """Slots of a shift."""
    absence: float = Field(0.0, ge=0, lt=1)
    """Chance that a device misses a slot of its shift."""

    def law(self, device_count: int, streams: Streams) -> Callable[[Integers, Integers], Booleans]:
        """Whether each of some devices [n] is there in each of as many slots [n]; draws by device and slot alone."""

        def in_slot(ids: Integers, slots: Integers) -> Booleans:
            on_duty = slots // self.length % self.groups == ids % self.groups
            return np.asarray(on_duty & (streams.uniform("shifts", ids, slots) >= self.absence))

        return in_slot

    def remedy(self) -> str:
        """Advice for an error message when too few devices are there."""
        return "lower availability.absence or availability.groups"
