"""Devices that are asked in each round whether they join."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.joining.law import Asked, Fleet, Law
from edgesim.streams import Streams

EPOCHS = 3
"""Last local epochs whose accuracies are remembered."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Chances and answers of the devices that were asked in a round."""

    ids: Integers
    """Devices asked, [n]."""
    chance: Floats
    """P_i(R), [n]."""
    joined: Booleans
    """Whether each device joins, [n]."""

    @property
    def joiners(self) -> Integers:
        """Devices that join, ascending."""
        return self.ids[self.joined]

    def values(self) -> dict[tuple[str, str], float]:
        """Rows of ``metrics`` by (name, key): ``join_chance`` and ``joined`` of each device asked."""
        keys = [str(device) for device in self.ids.tolist()]
        chances = {("join_chance", key): chance for key, chance in zip(keys, self.chance.tolist(), strict=True)}
        joined = {("joined", key): float(joins) for key, joins in zip(keys, self.joined.tolist(), strict=True)}
        return chances | joined


@dataclass
class JoinMemory:
    """Accuracies that devices remember of their own training."""

    accuracies: Floats
    """Of each device's last `EPOCHS` local epochs, the newest last, [N, EPOCHS]; nan where there were fewer."""


@dataclass
class Joiners:
    """A joining law with the memory of a run; nothing but the memory changes."""

    law: Law
    fleet: Fleet
    streams: Streams
    memory: JoinMemory = field(init=False)

    def __post_init__(self) -> None:
        self.memory = JoinMemory(np.full((len(self.fleet.s_per_sample), EPOCHS), np.nan))

    def ask(self, ids: Integers, round: int) -> Answers:
        """Devices [n], ascending, that may join a round; stream ``joining``, the same whatever the law and method."""
        chance = self.law.chances(Asked(ids, round, self._mean(ids)), self.fleet)
        return Answers(ids, chance, self.streams.uniform("joining", ids, round) < chance)

    def learn(self, device: int, accuracies: Sequence[float]) -> None:
        """Remember the accuracies of the epochs that a device has just trained."""
        own = self.memory.accuracies
        own[device] = [*own[device], *accuracies][-EPOCHS:]

    def _mean(self, ids: Integers) -> Floats:
        own = self.memory.accuracies[ids]
        count = np.count_nonzero(~np.isnan(own), axis=1)
        total = np.nansum(own, axis=1)
        return np.asarray(np.divide(total, count, out=np.full(len(ids), np.nan), where=count > 0))
