"""Solar-powered devices: each is available with a probability that follows its own day.

The timed-random participation of the DPFL benchmark, p_i(t), for clients spread over longitudes: the sun's height,
p_i(t) = peak max(0, cos 2 pi (t / day - phase_i)), with phase_i uniform over the day. Its slots are lengths of time,
with one draw each, so that a device can leave in the middle of a round; with ``day_rounds`` they are rounds.
"""

from functools import partial
from typing import ClassVar, Self

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.needs import GIVEN, Rule
from edgesim.base.quantities import Factor, Seconds
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.forced import Forced
from edgesim.traces.models.options import DAY_S, IfEmpty, Model, slot_length_s
from edgesim.traces.slots import Slots

_EXACT = 2**50
"""Slots up to which rounding moves an instant by less than a slot."""


class Solar(Model):
    """Draws: streams ``availability``, indexed by the slot, and ``availability-phase``."""

    goes_with: ClassVar[tuple[Rule, ...]] = (Rule({"day_rounds": GIVEN}, {"day_s": None, "slot_s": None}),)

    peak: float = Field(1.0, gt=0, le=1)
    """Probability at the device's noon."""
    day_s: Seconds | None = Field(None, ge=1e-6)
    """Length of the day; 86,400 when absent."""
    slot_s: Seconds | None = Field(None, ge=1e-6)
    """Length of a slot; the default is the deadline ``round.tmax_s``."""
    day_rounds: Factor | None = Field(None, ge=1e-6)
    """Length of the day in rounds; each slot is then a round."""
    if_empty: IfEmpty | None = None
    """Fate of a slot in which nobody is available: ``force`` or ``wait``, as in `Slotted`."""

    @override
    def resolved(self, tmax_s: float, has_rounds: bool) -> Self:
        if self.day_rounds is not None:
            return self
        return self.model_copy(update={"day_s": self.day_s or DAY_S, "slot_s": self.slot_s or tmax_s})

    def probability(self, ids: Integers, t: Floats, streams: Streams) -> Floats:
        """Probability of availability in a slot that begins at ``t``, in s or in rounds; [n]."""
        phase = streams.uniform("availability-phase", ids)
        day = self.day_rounds or self.day_s or DAY_S
        return np.asarray(self.peak * np.maximum(0.0, np.cos(2 * np.pi * (t / day - phase))))

    @override
    def make(self, device_count: int, streams: Streams) -> Availability:
        """Availability drawn in every slot with the probability at the slot's start."""
        slot_s = None if self.day_rounds is not None else slot_length_s(self.slot_s)

        def in_slot(ids: Integers, slots: Integers) -> Booleans:
            begin = np.asarray(slots * (slot_s or 1.0), dtype=np.float64)
            return streams.uniform("availability", ids, slots) < self.probability(ids, begin, streams)

        forces, remedy = self.if_empty == "force", f"raise availability.peak ({self.peak:g})"
        law = Forced(device_count, in_slot, streams) if forces else in_slot
        if slot_s is None:
            return ByRounds(device_count, law, remedy)
        # Anybody may be forced, at night too.
        skip = None if forces else partial(_slot_of_day, streams, slot_s, self.day_s or DAY_S)
        return Slots(device_count, slot_s, law, remedy, skip)


def _slot_of_day(streams: Streams, slot_s: float, day_s: float, ids: Integers, slots: Integers) -> Integers:
    """The slots themselves, [n]; where it is night for a device, one of the last two slots before that of its dawn.

    A device's night lasts from a quarter to three quarters of a day after its noon: its probability is 0.
    """
    phase = streams.uniform("availability-phase", ids)
    turns = slots * slot_s / day_s - phase
    dawn = np.floor((np.floor(turns) + 0.75 + phase) * day_s / slot_s)
    is_night = (np.abs(turns % 1 - 0.5) < 0.25) & (slots < _EXACT)
    return np.where(is_night, np.maximum(dawn.astype(np.int64) - 2, slots), slots)
