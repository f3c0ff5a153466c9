"""The server of one run: its outer loop over the models that a protocol's process makes."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import simpy

from edgesim.base.errors import EdgesimError
from edgesim.engine.process import Process, RoundNumber
from edgesim.engine.run_parts import RunParts

ALL_DONE = "all rounds done"
LAST_S = 1e10
"""End of simulated time, 317 years: around later instants a float cannot tell milliseconds apart."""


@dataclass(frozen=True)
class RunProgress:
    """Progress of a run after a round, for displays."""

    round: int
    t_s: float
    accuracy: float | None
    """Test accuracy of the last model tested."""


@dataclass
class Server:
    """Runs the rounds of one run on a clock."""

    parts: RunParts
    process: Process
    """Process that makes the models."""
    on_round: Callable[[RunProgress], None]
    accuracy: float | None = None
    """Test accuracy of the last model tested."""
    at_end: Callable[[RoundNumber], None] = lambda _: None
    """Called at the end of each round, where the run can be saved."""

    def run(self, numbers: Iterator[RoundNumber]) -> Generator[simpy.Event, Any, str]:
        """Run the rounds as a process of the clock; returns the reason of the run's end."""
        goal = self.parts.world.config.stop_at_accuracy
        for number in numbers:
            # Several tests may have come in one step, and the last of them need not be the best.
            if goal is not None and (best := self.parts.evaluations.best) >= goal:
                return f"stop_at_accuracy = {goal:g}, a test has {best:.4g}"
            reason, evaluation = yield from self.process.step(number)
            if reason is not None:
                return reason
            if evaluation is not None:
                self.accuracy = evaluation.accuracy
            if self.parts.clock.now > LAST_S:
                raise EdgesimError(
                    f"round {number.round} ended at {self.parts.clock.now:.4g} s, beyond the {LAST_S:g} s (317 years) "
                    "that can be simulated; lower learning.steps, learning.epochs, or devices.a_s_per_sample"
                )
            if number.last_of_frame:
                self.parts.learner.end_frame()
            self.on_round(RunProgress(number.round, self.parts.clock.now, self.accuracy))
            if self.parts.clock.is_between_events:
                self.at_end(number)
        return ALL_DONE

    def stop(self) -> None:
        """End the run: break off the work in flight and write the rows that are missing."""
        now_s = self.parts.clock.now
        self.parts.evaluations.end(now_s)
        self.parts.report.end(now_s, self.process.break_off())
