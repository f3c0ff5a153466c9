"""Availability drawn by rounds: what is drawn for a round holds from its start to its end."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@dataclass
class ByRounds:
    """Who is there in each round; an `Availability` that the server tells when a slot begins.

    A slot is a round, with what passes until the next one opens, or a wait of the server for enough devices; slots are
    numbered from 0, so slot r - 1 is round r as long as the server has not waited. How long slots last is up to the
    run: of all instants this knows the present slot alone, which is taken to last for ever, and ``t_s`` changes
    nothing.
    """

    device_count: int
    in_slot: Callable[[Integers, Integers], Booleans]
    """Whether devices, [n], are there in slots, [n]; a pure function."""
    remedy: str
    """What to change when too few are ever there."""
    slot: int = -1
    """The present one; none before the first."""

    def begin_slot(self) -> None:
        """A round, or a wait for enough devices, begins now."""
        self.slot += 1

    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """Whether each device is there in the present slot, [n]."""
        return self.in_slot(ids, np.broadcast_to(np.int64(self.slot), len(ids)))

    def available_until(self, ids: Integers, t_s: ArrayLike, horizon_s: float = np.inf) -> Floats:
        """``inf`` for who is there, ``t_s`` for who is not, [n]."""
        return np.where(self.available(ids, t_s), np.inf, t_s)

    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """``t_s`` for who is there, ``inf`` for who is not, [n]: when the next slot begins is not known."""
        return np.where(self.available(ids, t_s), t_s, np.inf)

    def next_time_with(self, count: int, t_s: float) -> float:
        """``t_s`` where at least ``count`` devices are there, else ``inf``."""
        present = self.available(np.arange(self.device_count), t_s)
        return t_s if np.count_nonzero(present) >= count else np.inf

    def next_change(self, t_s: float) -> float:
        """Not known: ``inf``."""
        return np.inf
