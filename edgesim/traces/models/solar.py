"""Solar-powered devices: each is available with a probability that follows its own day.

The timed-random participation of the DPFL benchmark, p_i(t), for clients spread over longitudes: the sun's height,
p_i(t) = peak max(0, cos 2 pi (t / day - phase_i)), with phase_i uniform over the day. Its slots are always lengths of
time, not rounds, with one draw each: a device can leave in the middle of a round.
"""

from typing import Self

import numpy as np
from pydantic import Field

from edgesim.arrays import Booleans, Floats, Integers
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.models.options import DAY_S, Model, slot_length_s
from edgesim.traces.slots import Slots


class Solar(Model):
    """Draws: streams ``availability``, indexed by the slot, and ``availability-phase``."""

    peak: float = Field(1.0, gt=0, le=1)
    """Probability at the device's noon."""
    day_s: float = Field(DAY_S, gt=0)
    slot_s: float | None = Field(None, gt=0)
    """Length of a slot; the default is the deadline ``round.tmax_s``."""

    def resolved(self, tmax_s: float, has_rounds: bool) -> Self:
        """With the length of a slot filled in."""
        return self if self.slot_s is not None else self.model_copy(update={"slot_s": tmax_s})

    def probability(self, ids: Integers, t_s: Floats, streams: Streams) -> Floats:
        """Probability of availability in a slot that begins at ``t_s``, [n]."""
        phase = streams.uniform("availability-phase", ids)
        return np.asarray(self.peak * np.maximum(0.0, np.cos(2 * np.pi * (t_s / self.day_s - phase))))

    def make(self, device_count: int, streams: Streams) -> Availability:
        """Availability drawn in every slot with the probability at the slot's start."""
        slot_s = slot_length_s(self.slot_s)

        def in_slot(ids: Integers, slots: Integers) -> Booleans:
            begin_s = np.asarray(slots * slot_s, dtype=np.float64)
            return streams.uniform("availability", ids, slots) < self.probability(ids, begin_s, streams)

        return Slots(device_count, slot_s, in_slot, f"raise availability.peak ({self.peak:g})")
