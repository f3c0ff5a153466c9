"""In each slot each device is available with its own probability, independently of other slots and devices.

With rounds as slots this is the timed-random participation of the DPFL benchmark.
"""

from functools import cached_property
from typing import Annotated, Any

import numpy as np
from pydantic import Discriminator, Field, Tag

from edgesim.arrays import Booleans, Floats, Integers
from edgesim.errors import EdgesimError
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.models.always import Always
from edgesim.traces.models.options import Slotted

_Rate = Annotated[float, Field(gt=0, le=1)]


def _branch(value: Any) -> str:
    return "list[float]" if isinstance(value, list) else "float"


class Bernoulli(Slotted):
    """Draws: stream ``availability``, indexed by the slot."""

    probability: Annotated[
        Annotated[_Rate, Tag("float")] | Annotated[list[_Rate], Field(min_length=1), Tag("list[float]")],
        Discriminator(_branch),
    ] = 1.0
    """One number, or a list of one number for each device; further numbers of a list are left out."""

    @cached_property
    def _rates(self) -> Floats:
        """The probability of all devices, [1], or of each, [devices]."""
        return np.atleast_1d(np.asarray(self.probability, dtype=np.float64))

    def in_slot(self, ids: Integers, slots: Integers, streams: Streams) -> Booleans:
        """Whether each device is available in its slot, [n]."""
        rates = self._rates[ids] if isinstance(self.probability, list) else self._rates
        return streams.uniform("availability", ids, slots) < rates

    def remedy(self) -> str:
        """Advice to raise the probability."""
        return f"raise availability.probability ({self._rates.min():g}{' and up' if len(self._rates) > 1 else ''})"

    def make(self, device_count: int, streams: Streams) -> Availability:
        """Independent availability in every slot; raises `EdgesimError` for a list of too few numbers."""
        if isinstance(self.probability, list) and len(self.probability) < device_count:
            raise EdgesimError(
                f"availability.probability: is a list of {len(self.probability)} numbers, but devices.count is "
                f"{device_count}; give one number for each device, or one for all",
                "availability.probability",
                "devices.count",
            )
        # With probability 1 no stay ends, and every call would search for its end up to the limit.
        return Always(device_count) if self.probability == 1.0 else super().make(device_count, streams)
