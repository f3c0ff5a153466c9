"""Episodes: runs in memory whose decisions somebody outside makes, such as an agent that learns to schedule."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from edgesim.api.configs import Config, Overrides, configured
from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.registry import plug_ins_named
from edgesim.engine.decisions import Decision
from edgesim.engine.server import RunEnd
from edgesim.folder.run_progress import RunProgress
from edgesim.selection.view import Choice, Drafter, RoundReport, RoundView
from edgesim.simulation.complete import complete
from edgesim.simulation.simulation import Simulation


@dataclass(frozen=True)
class Outcome:
    """What became of the decisions before a model: the report that policies hear, and the round's progress."""

    report: RoundReport
    progress: RunProgress
    """Simulated seconds, accuracy, bits and joules at the round's end."""


@dataclass(frozen=True)
class Turn:
    """A decision that an episode waits for."""

    view: RoundView
    """Facts on the candidates, as policies see them; its lazy parts are to be looked at before the decision."""
    outcomes: tuple[Outcome, ...]
    """Models made since the turn before: one after each decision of a round, none or several without rounds."""


class Episode:
    """A run in memory that stops at each decision; it writes no folder and handles no signals.

    Several episodes may be advanced in turns in one process. `close`, or the end of a ``with`` block, frees what the
    last one holds.
    """

    def __init__(
        self,
        config: Config,
        set: Overrides | None = None,
        *,
        looks_at: Collection[str] = (),
        on_report: Callable[[RoundReport], None] = lambda _: None,
    ) -> None:
        """``config`` and ``set`` are those of `edgesim.run`; the config's policy is not asked.

        ``looks_at`` names what the decisions look at beyond the view's arrays, as a policy's ``looks_at`` does.
        ``on_report`` is called when a model is made, while the lazy parts of the report may be asked for. Raises
        `EdgesimError` for a config that is refused.
        """
        self._settings = configured(config, set)
        self._looks_at, self._on_report = frozenset(looks_at), on_report
        self._simulation: Simulation | None = None
        self._open: Decision | None = None
        self._report: RoundReport | None = None
        self.outcomes: list[Outcome] = []
        """Outcomes since the last decision; behind the end of the run its last ones."""
        self.reason = "it has not begun"
        """Why there is no decision to make."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that train and free memory; `reset` begins again."""
        if self._simulation is not None:
            self._simulation.close()
        self._simulation = self._open = None

    @plug_ins_named()
    def reset(self, seed: int | None = None) -> Turn | None:
        """Begin the run, with another ``seed`` than the config's if one is given; returns the first decision.

        None if the run ends before there is one. Raises `EdgesimError`.
        """
        self.close()
        seeded = self._settings if seed is None else self._settings.model_copy(update={"seed": seed})
        self._simulation = simulation = Simulation(complete(seeded), looks_at=self._looks_at)
        policy = seeded.selection.policy
        server = simulation.make_server(_NoTables())
        if isinstance(server.parts.selector, Drafter):
            self.close()
            raise EdgesimError(
                f"selection.policy {policy!r}: picks among arrivals, which no episode does; name another"
            )
        server.parts.answerer = self
        simulation.learner.prepare(lambda _: None)
        simulation.begin()
        return self._advance()

    @plug_ins_named()
    def decide(self, offers: Iterable[int] | Integers) -> Turn | None:
        """Offer devices in order, and simulate to the next decision; None at the end of the run.

        Admission takes or skips each, as it does for a policy. Raises `EdgesimError` for a device that is no candidate
        or is offered twice, with the decision left open, and if there is none.
        """
        decision = self._open
        if decision is None:
            raise EdgesimError(f"decide: there is no decision to make: {self.reason}; reset the episode")
        try:
            decision.answer(_choice(offers))
        except EdgesimError as error:
            raise EdgesimError(f"decide in round {decision.view.round}: {str(error).partition(': ')[2]}") from None
        return self._advance()

    def _advance(self) -> Turn | None:
        self._open, self.outcomes = None, []
        assert self._simulation is not None
        while not isinstance(state := self._simulation.advance(), Decision):
            if isinstance(state, RunEnd):
                self.reason = state.reason
                self._simulation.server.stop()
                return None
            assert self._report is not None
            self.outcomes.append(Outcome(self._report, state))
        self._open = state
        return Turn(state.view, tuple(self.outcomes))

    def ask(self, decision: Decision) -> None:
        """Leave a decision of the run open, for `decide`."""

    def hear(self, report: RoundReport) -> None:
        """Keep the report of a model that the run has made."""
        self._on_report(report)
        # Lazy parts would be worked out with what comes later.
        gone: Any = _Gone()
        self._report = replace(report, gradients=gone)


def _choice(offers: Iterable[int] | Integers) -> Choice:
    """Offer devices in order, as a policy does."""
    if isinstance(offers, np.ndarray):
        yield offers
    else:
        # Through a generator, since a list takes no answers.
        yield from (device for device in offers)


class _NoTables:
    """Tables of a run that keeps none."""

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Leave rows out."""


class _Gone:
    """Lazy parts of a report that can no longer be asked for."""

    def __getattr__(self, name: str) -> Any:
        raise EdgesimError(f"report.gradients.{name}: the round is over; ask for it in on_report")
