"""Each device comes and goes as a two-state Markov chain over slots (the DPFL benchmark's Markovian participation)."""

from typing import Annotated

import numpy as np
from pydantic import Discriminator, Field, Tag

from edgesim.arrays import Booleans, Integers
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.models.options import Slotted
from edgesim.traces.models.rates import branch, need_one_each, of_each

_Rate = Annotated[float, Field(gt=0, lt=1)]
_Rates = Annotated[
    Annotated[_Rate, Tag("float")] | Annotated[list[_Rate], Field(min_length=1), Tag("list[float]")],
    Discriminator(branch),
]


class Markov(Slotted):
    """Draws: stream ``availability``, indexed by the slot; the first slot is drawn from the stationary law.

    Each probability is one number, or a list of one for each device; further numbers of a list are left out.
    """

    join_probability: _Rates = 0.2
    """Probability that an absent device is available in the next slot."""
    leave_probability: _Rates = 0.2
    """Probability that an available device is absent in the next slot."""

    def in_slot(self, ids: Integers, slots: Integers, streams: Streams) -> Booleans:
        """Whether each device is available in its slot, [n].

        With p, q the probabilities to join and to leave, the state of a slot is drawn anew with probability
        1 - |1 - p - q|; otherwise it is that of the slot before, or its opposite if p + q > 1. This is the same chain,
        but the state of a slot depends on the draws back to the last slot drawn anew only.
        """
        joins, leaves = of_each(self.join_probability, ids), of_each(self.leave_probability, ids)
        flips = joins + leaves > 1
        forgets = np.where(flips, 2 - joins - leaves, joins + leaves)
        anew = np.where(flips, 1 - leaves, joins) / forgets
        stationary = joins / (joins + leaves)
        there = np.zeros(len(ids), dtype=bool)
        back = np.array(slots)
        open_ = np.arange(len(ids))
        while len(open_):
            draws = streams.uniform("availability", ids[open_], back[open_], count=2)
            first = back[open_] == 0
            settled = first | (draws[:, 0] < forgets[open_])
            chance = np.where(first, stationary[open_], anew[open_])
            known = open_[settled]
            there[known] = (draws[:, 1] < chance)[settled]
            there[known] ^= flips[known] & ((slots[known] - back[known]) % 2 == 1)
            open_ = open_[~settled]
            back[open_] -= 1
        return there

    def remedy(self) -> str:
        """Advice to raise the probability to join."""
        least = np.min(self.join_probability)
        return f"raise availability.join_probability ({least:g}{' and up' if np.ndim(self.join_probability) else ''})"

    def make(self, device_count: int, streams: Streams) -> Availability:
        """Chains that are independent of each other; raises `EdgesimError` for a list of too few numbers."""
        need_one_each("join_probability", self.join_probability, device_count)
        need_one_each("leave_probability", self.leave_probability, device_count)
        return super().make(device_count, streams)
