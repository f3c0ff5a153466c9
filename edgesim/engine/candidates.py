"""Candidates of a round: all devices that have checked in, or those of them that join."""

from dataclasses import dataclass, field
from typing import ClassVar

from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.engine.run_parts import RunParts
from edgesim.joining.joiners import Answers, Joiners
from edgesim.learning.interface import Learner
from edgesim.learning.jobs import Promise


@dataclass
class Everyone:
    """All devices that have checked in are candidates, without being asked."""

    SAVED: ClassVar[tuple[str, ...]] = ()

    unheard: list[Promise] = field(default_factory=list)
    """Jobs whose computing has ended since the last merge, if devices join by how they train."""

    def among(self, ids: Integers, round: int) -> Integers:
        """Candidates of a round among the devices ``ids``, ascending."""
        return ids

    def learn(self, learner: Learner) -> None:
        """Let devices learn from their training accuracies, also those whose updates do not arrive."""

    def values(self) -> dict[tuple[str, str], float]:
        """Rows of ``metrics`` about the answers in the last round, by (name, key)."""
        return {}


@dataclass
class Asked(Everyone):
    """Devices are asked whether they join a round."""

    SAVED: ClassVar[tuple[str, ...]] = ("unheard",)

    joiners: Joiners = field(kw_only=True)
    answers: Answers | None = None

    @override
    def among(self, ids: Integers, round: int) -> Integers:
        self.answers = self.joiners.ask(ids, round)
        return self.answers.joiners

    @override
    def learn(self, learner: Learner) -> None:
        promises, self.unheard = self.unheard, []
        if promises:
            for promise, accuracies in zip(promises, learner.epoch_accuracies(promises), strict=True):
                self.joiners.learn(promise.device, accuracies)

    @override
    def values(self) -> dict[tuple[str, str], float]:
        return {} if self.answers is None else self.answers.values()


def make_candidates(parts: RunParts) -> Everyone:
    """The candidates of a run's rounds."""
    return Everyone() if parts.joiners is None else Asked(joiners=parts.joiners)
