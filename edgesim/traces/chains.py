"""Two-state Markov chains of many devices, asked in any slot and in any order.

With p, q the probabilities to join and to leave, the state of a slot is drawn anew with probability 1 - |1 - p - q|;
otherwise it is that of the slot before, or its opposite if p + q > 1. This is the usual chain, but the state of a slot
depends on the draws back to the last slot drawn anew only. The first slot is drawn from the stationary law.
"""

from dataclasses import dataclass, field

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.streams import Streams

_AT_ONCE = 2**18
"""Most pairs of draws evaluated at once, which bounds the memory."""

_DRAW_LIMIT = 2**24
"""Pairs of draws in one answer: some five seconds."""


@dataclass
class Chains:
    """Whether devices are available in slots; draws: stream ``availability``, indexed by the slot.

    Of each device the last stretch that was walked through is remembered, so that slots asked one after another are not
    walked back from each time. An answer does not depend on it.
    """

    joins: Floats
    """Probability that an absent device is available in the next slot, [devices]."""
    leaves: Floats
    """Probability that an available device is absent in the next slot, [devices]."""
    streams: Streams
    _from: Integers = field(init=False)
    """The slot of each device's last state that was drawn anew, [devices]."""
    _until: Integers = field(init=False)
    """Slot behind ``_from`` up to which no other state is drawn anew, [devices]; -1 if nothing is known."""
    _state: Booleans = field(init=False)
    """Whether the device is available in ``_from``, [devices]."""

    def __post_init__(self) -> None:
        count = len(self.joins)
        self._from, self._until, self._state = np.zeros(count, np.int64), np.full(count, -1), np.zeros(count, bool)

    def __call__(self, ids: Integers, slots: Integers) -> Booleans:
        """Whether each device is available in its slot, [n]."""
        if not len(ids):
            return np.empty(0, dtype=bool)
        if np.all(ids[1:] > ids[:-1]):
            return self._there(ids, np.asarray(slots))
        order = np.lexsort((slots, ids))
        there = np.empty(len(ids), dtype=bool)
        there[order] = self._there(ids[order], slots[order])
        return there

    def _there(self, ids: Integers, slots: Integers) -> Booleans:
        """Whether each device is available in its slot, [n], for pairs in order of device and then of slot."""
        first = np.append(True, ids[1:] != ids[:-1])
        # The slot, at or before its own, at which each pair's walk back meets what is known.
        met = np.append(-1, slots[:-1])
        known = first & (self._from[ids] <= slots)
        met[first] = np.where(known[first], np.minimum(self._until[ids[first]], slots[first]), -1)
        known &= met >= 0
        anew, state = self._walked_back(ids, slots, met)
        known &= anew < 0
        anew[known], state[known] = self._from[ids[known]], self._state[ids[known]]
        # The others met the pair before them, which has the state drawn anew last.
        source = np.maximum.accumulate(np.where(anew >= 0, np.arange(len(ids)), 0))
        anew, state = anew[source], state[source]
        last = np.append(first[1:], True)
        devices, begins, ends = ids[last], anew[last], slots[last]
        continues = (self._until[devices] >= 0) & (self._from[devices] == begins)
        self._until[devices] = np.where(continues, np.maximum(self._until[devices], ends), ends)
        self._from[devices], self._state[devices] = begins, state[last]
        flips = self.joins[ids] + self.leaves[ids] > 1
        return np.asarray(state ^ (flips & ((slots - anew) % 2 == 1)))

    def _walked_back(self, ids: Integers, slots: Integers, met: Integers) -> tuple[Integers, Booleans]:
        """Last slot before each pair's own that is drawn anew, and its state, [n] each; -1 for none behind ``met``."""
        joins, leaves = self.joins[ids], self.leaves[ids]
        flips = joins + leaves > 1
        forgets = np.where(flips, 2 - joins - leaves, joins + leaves)
        chance = np.where(flips, 1 - leaves, joins) / forgets
        anew, state = np.full(len(ids), -1), np.zeros(len(ids), dtype=bool)
        back, open_, width, drawn = np.array(slots), np.flatnonzero(slots > met), 1, 0
        while len(open_):
            steps = back[open_, np.newaxis] - np.arange(max(1, min(width, _AT_ONCE // len(open_))))
            # Slots that are not walked through are drawn as slot 0, and not looked at.
            walked = steps > met[open_, np.newaxis]
            steps = np.maximum(steps, 0)
            devices = np.repeat(ids[open_], steps.shape[1])
            draws = self.streams.uniform("availability", devices, steps.ravel(), count=2).reshape(*steps.shape, 2)
            begins = steps == 0
            settled = walked & (begins | (draws[..., 0] < forgets[open_, np.newaxis]))
            is_settled = settled.any(axis=1)
            rows, columns = np.flatnonzero(is_settled), np.argmax(settled[is_settled], axis=1)
            which = open_[rows]
            stationary = joins[which] / (joins[which] + leaves[which])
            anew[which] = steps[rows, columns]
            state[which] = draws[rows, columns, 1] < np.where(begins[rows, columns], stationary, chance[which])
            back[open_] -= steps.shape[1]
            open_ = open_[~is_settled & (back[open_] > met[open_])]
            width, drawn = 2 * width, drawn + steps.size
            if drawn > _DRAW_LIMIT and len(open_):
                raise EdgesimError(
                    f"availability: the state of device {ids[open_[0]]} goes back over more slots than can be looked "
                    "at; raise join_probability or leave_probability",
                    "availability.join_probability",
                    "availability.leave_probability",
                )
        return anew, state
