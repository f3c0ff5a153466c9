"""Servers that merge the updates of rounds: one, or edge servers whose models are averaged in the cloud."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import simpy
from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.engine.process import RoundNumber
from edgesim.engine.run_parts import RunParts


@dataclass
class OneServer:
    """One server merges all updates, and broadcasts the model."""

    SAVED: ClassVar[tuple[str, ...]] = ("models",)

    parts: RunParts
    models: Integers = field(init=False)
    """Number of models that each server has sent or is to send after the first, [E]: at most one in a round."""
    in_cloud: bool = True
    """Whether the model to be broadcast comes from the cloud, not from edge servers."""

    def __post_init__(self) -> None:
        self.models = np.zeros(len(self.parts.backhaul.servers), dtype=np.int64)

    @property
    def model_held(self) -> bool:
        """Whether a server has the model that is tested, which else is the mean of the edge servers' models."""
        return True

    def to_cloud_s(self, number: RoundNumber) -> float:
        """Seconds that the models take to the cloud after a round; 0 if they are not averaged there then."""
        return 0.0

    def count(self, number: RoundNumber, servers: set[int]) -> None:
        """Count a round's new models, in ``servers`` that have merged updates."""
        self.models[list(servers)] += 1

    def average(self, number: RoundNumber) -> Generator[simpy.Event, Any, None]:
        """Average the servers' models in the cloud, if a round ends with that."""
        yield from ()


@dataclass
class EdgeServers(OneServer):
    """Edge servers merge the updates of their stations; their models are averaged every ``topology.cloud_every``."""

    SAVED: ClassVar[tuple[str, ...]] = ("models", "in_cloud", "apart")

    apart: set[int] = field(default_factory=set)
    """Servers that have merged updates since the last average in the cloud."""

    @property
    @override
    def model_held(self) -> bool:
        return len(self.apart) <= 1

    @override
    def to_cloud_s(self, number: RoundNumber) -> float:
        if not self._averages(number):
            return 0.0
        return float(self.parts.backhaul.to_cloud_s(self.parts.learner.accounts.model_bits).max())

    @override
    def count(self, number: RoundNumber, servers: set[int]) -> None:
        self.apart |= servers
        if self.apart and self._averages(number):
            # Averaging gives a new model to all, where any server has merged since the last time.
            self.models += 1
        else:
            self.models[list(servers)] += 1

    @override
    def average(self, number: RoundNumber) -> Generator[simpy.Event, Any, None]:
        self.in_cloud = self._averages(number)
        if self.in_cloud:
            yield self.parts.clock.timeout(self.to_cloud_s(number))
            self.parts.learner.average_in_cloud()
            self.apart.clear()

    def _averages(self, number: RoundNumber) -> bool:
        every = self.parts.world.config.topology.cloud_every
        return every is not None and (number.round_in_frame % every == 0 or number.last_of_frame)


def make_servers(parts: RunParts) -> OneServer:
    """The servers of a run that merge the updates of its rounds."""
    return OneServer(parts) if parts.world.config.topology.cloud_every is None else EdgeServers(parts)
