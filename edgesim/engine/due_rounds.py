"""Rounds that make a model: all of them, or those that FedStg's schedule does not skip (``merging``)."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar

from typing_extensions import override

from edgesim.engine.at_work import Working
from edgesim.engine.process import RoundNumber
from edgesim.engine.run_parts import RunParts
from edgesim.engine.stagnation import Stagnation


@dataclass
class EveryRound:
    """All rounds make a model."""

    SAVED: ClassVar[tuple[str, ...]] = ()

    parts: RunParts

    def begin(self, number: RoundNumber) -> None:
        """Decide whether a round makes a model."""

    def settle(self, working: Collection[Working]) -> None:
        """Note which devices have received the model, and the outcome of work that a skipped round does not use."""

    def values(self, number: RoundNumber, is_new: bool) -> dict[tuple[str, str], float]:
        """Rows of ``metrics`` about a round, by (name, key); ``is_new`` is whether it made a model."""
        return {}


@dataclass
class SomeRounds(EveryRound):
    """Rounds make a model by a schedule that goes by accuracy."""

    SAVED: ClassVar[tuple[str, ...]] = ("schedule",)

    schedule: Stagnation = field(default_factory=Stagnation)

    @override
    def begin(self, number: RoundNumber) -> None:
        if number.round == 1:
            self.parts.report.write_metrics(0, self._hear_accuracy(0, is_new=True).items())
        self.parts.learner.accounts.is_due = self.schedule.is_due(number.round)

    @override
    def settle(self, working: Collection[Working]) -> None:
        accounts, merging = self.parts.learner.accounts, self.parts.world.config.merging
        accounts.received([at.task.device for at in working if at.task.has_received])
        if accounts.sends or merging is None:
            return
        for at in working:
            if at.task.fate == "done":
                at.task.spans[-1].outcome = "kept" if merging.skip == "carry" else "skipped"

    @override
    def values(self, number: RoundNumber, is_new: bool) -> dict[tuple[str, str], float]:
        due = {("due", ""): float(self.parts.learner.accounts.is_due)}
        return due | self._hear_accuracy(number.round, is_new)

    def _hear_accuracy(self, round: int, is_new: bool) -> dict[tuple[str, str], float]:
        """Pass the accuracy of the model after a round to the schedule; returns a row of ``metrics``."""
        learner, merging = self.parts.learner, self.parts.world.config.merging
        assert merging is not None
        assert merging.signal is not None
        self.schedule.hear(round, learner.signal(merging.signal) if is_new else None)
        return {("schedule_accuracy", ""): self.schedule.accuracy}


def make_due_rounds(parts: RunParts) -> EveryRound:
    """The rounds of a run that make a model."""
    return EveryRound(parts) if parts.world.config.merging is None else SomeRounds(parts)
