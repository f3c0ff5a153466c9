"""In each slot each device is available with the same probability, independently of other slots and devices."""

from pydantic import Field

from edgesim.arrays import Booleans, Integers
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.models.always import Always
from edgesim.traces.models.options import Slotted


class Bernoulli(Slotted):
    """Draws: stream ``availability``, indexed by the slot."""

    probability: float = Field(1.0, gt=0, le=1)

    def in_slot(self, ids: Integers, slots: Integers, streams: Streams) -> Booleans:
        """Whether each device is available in its slot, [n]."""
        return streams.uniform("availability", ids, slots) < self.probability

    def remedy(self) -> str:
        """Advice to raise the probability."""
        return f"raise availability.probability ({self.probability:g})"

    def make(self, device_count: int, streams: Streams) -> Availability:
        """Independent availability in every slot."""
        # With probability 1 no stay ends, and every call would search for its end up to the limit.
        return Always(device_count) if self.probability == 1.0 else super().make(device_count, streams)
