"""Decisions of a run: what its protocol asks, and who answers, the policy at once or somebody outside of the run later.

A process that has asked yields the `Decision` while it is open, so that `Server.advance` returns it, at the instant at
which it was asked and with no event put on the clock. Whoever has it calls `Decision.answer`, and advances the run.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.radio.allocators import Allocator
from edgesim.selection.view import Choice, RoundReport, RoundView, Selector


@dataclass
class Decision:
    """A choice among the candidates of a round or, without rounds, for the next places."""

    view: RoundView
    """Facts on the candidates, as policies see them."""
    station: Integers
    """Station of each candidate, [n]."""
    free_hz: Floats
    """Free band of each station, in Hz, [M]."""
    admit: Callable[[Choice], Integers]
    """Function of the run's admission: positions in the view of the candidates that it takes of a choice."""
    share: Callable[[Integers, Allocator], Floats]
    """Function that shares the free bands by an allocator among candidates at some positions: Hz of each, [S]."""
    refusal_of_none: str = ""
    """Message of the error if nobody is taken; empty where that is allowed."""
    taken: Integers | None = None
    """Positions of the candidates taken, in their order; None while the decision is open."""
    shares_hz: Floats | None = None
    """Bandwidth of each candidate taken, in Hz, [S]; None where the allocator of the config shares the bands."""

    def answer(self, choice: Choice, allocator: Allocator | None = None) -> None:
        """Answer with a choice as `Selector.choose` makes it, such as ``(device for device in ids)``.

        An ``allocator`` shares the bands in place of the config's, where the protocol has rounds. Raises `EdgesimError`
        for offers and shares that are not allowed, and where nobody is taken but has to be; the decision then stays
        open.
        """
        taken = self.admit(choice)
        if self.refusal_of_none and not len(taken):
            raise EdgesimError(self.refusal_of_none, "selection.policy")
        if allocator is not None:
            self.shares_hz = self.share(taken, allocator)
        self.taken = taken


class Answerer(Protocol):
    """Answers the decisions of a run."""

    def ask(self, decision: Decision) -> None:
        """Answer a decision, or leave it open."""

    def hear(self, report: RoundReport) -> None:
        """Hear what became of the decisions since the last model, once the next one is made."""


@dataclass(frozen=True)
class ByPolicy:
    """The run's policy answers at once."""

    policy: Selector

    def ask(self, decision: Decision) -> None:
        """Let the policy choose."""
        decision.answer(self.policy.choose(decision.view))

    def hear(self, report: RoundReport) -> None:
        """Let the policy learn from a report."""
        self.policy.hear(report)


def answered(answerer: Answerer, decision: Decision) -> Generator[Decision, Any, tuple[Integers, Floats | None]]:
    """Ask for a decision and wait while it is open; returns the positions of the candidates taken, and their shares."""
    answerer.ask(decision)
    while (taken := decision.taken) is None:
        yield decision
    return taken, decision.shares_hz
