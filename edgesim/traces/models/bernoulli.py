"""In each slot each device is there with the same probability, independently of all else."""

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
        """Whether each device is there in its slot, [n]."""
        return streams.uniform("availability", ids, slots) < self.probability

    def remedy(self) -> str:
        """More of it."""
        return f"raise availability.probability ({self.probability:g})"

    def make(self, device_count: int, streams: Streams) -> Availability:
        """Independent availability in every slot."""
        # Else the end of a stay that has none would be looked for in each call.
        return Always(device_count) if self.probability == 1.0 else super().make(device_count, streams)
