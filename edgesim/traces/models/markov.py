"""Each device comes and goes as a two-state Markov chain over slots (the DPFL benchmark's Markovian participation)."""

import numpy as np
from pydantic import Field

from edgesim.arrays import Booleans, Integers
from edgesim.streams import Streams
from edgesim.traces.models.options import Slotted


class Markov(Slotted):
    """Draws: stream ``availability``, indexed by the slot; the first slot is drawn from the stationary law."""

    join_probability: float = Field(0.2, gt=0, lt=1)
    """Probability that an absent device is available in the next slot."""
    leave_probability: float = Field(0.2, gt=0, lt=1)
    """Probability that an available device is absent in the next slot."""

    def in_slot(self, ids: Integers, slots: Integers, streams: Streams) -> Booleans:
        """Whether each device is available in its slot, [n].

        With p, q the probabilities to join and to leave, the state of a slot is drawn anew with probability
        1 - |1 - p - q|; otherwise it is that of the slot before, or its opposite if p + q > 1. This is the same chain,
        but the state of a slot depends on the draws back to the last slot drawn anew only.
        """
        joins, leaves = self.join_probability, self.leave_probability
        flips = joins + leaves > 1
        forgets = 2 - joins - leaves if flips else joins + leaves
        anew = (1 - leaves if flips else joins) / forgets
        there = np.zeros(len(ids), dtype=bool)
        back = np.array(slots)
        open_ = np.arange(len(ids))
        while len(open_):
            draws = streams.uniform("availability", ids[open_], back[open_], count=2)
            first = back[open_] == 0
            settled = first | (draws[:, 0] < forgets)
            chance = np.where(first, joins / (joins + leaves), anew)
            known = open_[settled]
            there[known] = (draws[:, 1] < chance)[settled]
            if flips:
                there[known] ^= (slots[known] - back[known]) % 2 == 1
            open_ = open_[~settled]
            back[open_] -= 1
        return there

    def remedy(self) -> str:
        """Advice to raise the probability to join."""
        return f"raise availability.join_probability ({self.join_probability:g})"
