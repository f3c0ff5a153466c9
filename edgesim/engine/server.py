"""The server of one run: its outer loop over the models that a protocol makes, advanced from round to round."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from edgesim.base.errors import EdgesimError
from edgesim.engine.clock import EventKind, drift_s, rounding_s
from edgesim.engine.deadlines import Deadlines
from edgesim.engine.protocol import RoundNumber, RunProtocol, stopped
from edgesim.engine.run_parts import RunParts
from edgesim.engine.stagnation import Stagnation
from edgesim.engine.synchronous import Synchronous
from edgesim.engine.unsynchronised import Unsynchronised

ALL_DONE = "all rounds done"
LAST_S = 1e10
"""End of simulated time, 317 years: around later instants a float cannot tell milliseconds apart."""


@dataclass(frozen=True)
class RunProgress:
    """State of a run at the end of a round."""

    round: int
    t_s: float
    """Simulated time, in seconds."""
    accuracy: float | None
    """Test accuracy of the last model tested; None before the first test."""
    bits_up: float
    """Bits that devices sent in the round, like the two below as in ``rounds``."""
    bits_down: float
    energy_j: float


@dataclass(frozen=True)
class RunEnd:
    """End of a run's last round, or of the time that it simulates."""

    reason: str


@dataclass
class Server:
    """Runs the rounds of one run, one after another as `advance` asks for them.

    The rounds are one generator that yields the events it waits for. `advance` steps the clock until these have
    happened, so that between two rounds nothing is under way but what lies on the clock.
    """

    parts: RunParts
    accuracy: float | None = None
    """Test accuracy of the last model tested."""
    number: RoundNumber | None = None
    """The last round that ended."""
    protocol: RunProtocol = field(init=False)
    """Protocol that makes the models."""
    _rounds: Generator[simpy.Event | RunProgress, Any, str] = field(init=False)
    _stop: simpy.Event | None = None
    """End of simulated time; None where the rounds alone end the run."""

    def __post_init__(self) -> None:
        config = self.parts.world.config
        if config.round.protocol == "synchronous":
            never = np.zeros(config.devices.count, dtype=np.int64)
            schedule = None if config.merging is None else Stagnation()
            self.protocol = Synchronous(self.parts, never, Deadlines(config.round.tmax_s), schedule)
        else:
            self.protocol = Unsynchronised(self.parts, next_task=np.ones(config.devices.count, dtype=np.int64))

    def begin(self, numbers: Iterator[RoundNumber]) -> None:
        """Put the run's end on the clock, and begin with the first of the rounds, which `advance` runs."""
        clock, config, availability = self.parts.clock, self.parts.world.config, self.parts.world.availability
        self._rounds = self._run(numbers)
        if np.isfinite(known_s := availability.known_until_s):
            # A round that closes there counts: after a wait the clock's sum may lie a rounding step behind it.
            until_s = known_s + rounding_s(config.round.tmax_s, known_s)
            clock.call_at(until_s, EventKind.STOP, lambda _: availability.refuse_time_beyond())
        if config.stop_at_s is not None:
            # A round that closes at stop_at_s counts.
            self._stop = clock.at(config.stop_at_s + drift_s(config.round.tmax_s), EventKind.STOP)

    def advance(self) -> RunProgress | RunEnd:
        """Simulate to the end of the next round, or of the run; raises `EdgesimError`."""
        clock, value = self.parts.clock, None
        while True:
            try:
                awaited = self._rounds.send(value)
            except StopIteration as end:
                return self._ended(end.value)
            if isinstance(awaited, RunProgress):
                return awaited
            while not awaited.processed:
                try:
                    clock.step()
                except simpy.core.EmptySchedule:
                    raise EdgesimError(
                        f"from {clock.now:g} s on, the recorded capacity is 0 for ever, and no upload can end; end the "
                        'run earlier (stop_at_s) or repeat the recorded capacity (after_end = "wrap")'
                    ) from None
                if self._stop is not None and self._stop.processed:
                    return RunEnd(stopped(self.parts.world.config))
            value = awaited.value

    def _ended(self, reason: str) -> RunEnd:
        """End a run whose rounds are over; what happens at this instant with no delay still happens."""
        clock, availability = self.parts.clock, self.parts.world.availability
        while not clock.is_between_events:
            clock.step()
        if self._stop is None and reason != ALL_DONE and np.isfinite(availability.known_until_s):
            availability.refuse_time_beyond()
        return RunEnd(reason)

    def _run(self, numbers: Iterator[RoundNumber]) -> Generator[simpy.Event | RunProgress, Any, str]:
        """Run the rounds, each of which ends with its progress; returns the reason of the run's end."""
        goal = self.parts.world.config.stop_at_accuracy
        for number in numbers:
            # Several tests may have come in one step, and the last of them need not be the best.
            if goal is not None and (best := self.parts.evaluations.best) >= goal:
                return f"stop_at_accuracy = {goal:g}, a test has {best:.4g}"
            reason, evaluation = yield from self.protocol.step(number)
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
            self.number = number
            spent = self.parts.report.spent
            yield RunProgress(number.round, self.parts.clock.now, self.accuracy, **vars(spent))
        return ALL_DONE

    def stop(self) -> None:
        """End the run: break off the work in flight and write the rows that are missing."""
        now_s = self.parts.clock.now
        self.parts.evaluations.end(now_s)
        self.parts.report.end(now_s, self.protocol.break_off())
