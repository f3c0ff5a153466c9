"""In each slot each device is there with the same probability, independently of all else."""

from pydantic import Field

from edgesim.streams import Streams
from edgesim.traces.availability import Availability, Booleans, Integers
from edgesim.traces.models.always import Always
from edgesim.traces.models.options import Model, slot_length_s
from edgesim.traces.slots import Slots


class Bernoulli(Model):
    """Draws: stream ``availability``, indexed by the slot."""

    probability: float = Field(1.0, gt=0, le=1)
    slot_s: float | None = Field(None, gt=0)
    """Length of a slot; the round's deadline when absent."""

    def make(self, device_count: int, streams: Streams) -> Availability:
        """Independent presence in every slot."""
        slot_s = slot_length_s(self.slot_s)
        if self.probability == 1.0:
            # Else the end of a stay that has none would be looked for in each call.
            return Always(device_count)

        def in_slot(ids: Integers, slots: Integers) -> Booleans:
            return streams.uniform("availability", ids, slots) < self.probability

        remedy = f"raise availability.probability ({self.probability:g})"
        return Slots(device_count, slot_s, in_slot, remedy)
