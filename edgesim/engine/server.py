"""The server of one run: its outer loop over the models of a protocol's process, advanced from round to round."""

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import simpy

from edgesim.base.errors import EdgesimError
from edgesim.engine.clock import EventKind, Instant, drift_s, rounding_s
from edgesim.engine.decisions import Decision
from edgesim.engine.process import Process, RoundNumber, stopped
from edgesim.engine.run_parts import RunParts
from edgesim.engine.watched import refuse, watched_step
from edgesim.folder.run_progress import RunProgress

ALL_DONE = "all rounds done"
LAST_S = 1e10
"""End of simulated time, 317 years: around later instants a float cannot tell milliseconds apart."""


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
    process: Process
    """Process that makes the models."""
    number: RoundNumber | None = None
    """The last round that ended."""
    _rounds: Generator[simpy.Event | Decision | RunProgress, Any, str] = field(init=False)
    _stop: simpy.Event | None = None
    """End of simulated time; None where the rounds alone end the run."""

    def begin(self, numbers: Iterator[RoundNumber]) -> None:
        """Put the run's end on the clock, and begin with the first of the rounds, which `advance` runs."""
        clock, config, availability = self.parts.clock, self.parts.world.config, self.parts.world.availability
        self._rounds = self._run(numbers)
        self._end_of_recording(availability.known_until_s, lambda _: availability.refuse_time_beyond())
        if (moving := self.parts.world.moving) is not None:
            self._end_of_recording(moving.paths.known_until_s, moving.paths.need_known)
        if config.stop_at_s is not None:
            # A round that closes at stop_at_s counts.
            self._stop = Instant(clock, config.stop_at_s + drift_s(config.round.tmax_s), EventKind.STOP)

    def _end_of_recording(self, known_s: float, refuse_from: Callable[[float], None]) -> None:
        """Call ``refuse_from`` with the first instant of the run at which a recording that ends is not known."""
        if math.isfinite(known_s):
            # A round that closes there counts: after a wait the clock's sum may lie a rounding step behind it.
            until_s = known_s + rounding_s(self.parts.world.config.round.tmax_s, known_s)
            self.parts.clock.call_at(until_s, EventKind.STOP, lambda _: refuse_from(until_s))

    def advance(self) -> RunProgress | RunEnd | Decision:
        """Simulate to the end of the next round, or of the run, or to an open decision; raises `EdgesimError`."""
        clock, value = self.parts.clock, None
        while True:
            try:
                awaited = self._rounds.send(value)
            except StopIteration as end:
                return self._ended(end.value)
            if isinstance(awaited, RunProgress | Decision):
                return awaited
            while not awaited.processed:
                try:
                    clock.step()
                except simpy.core.EmptySchedule:
                    self._refuse_to_wait()
                if self._stop is not None and self._stop.processed:
                    if clock.peek() == math.inf and not self._is_recorded:
                        self._refuse_to_wait()
                    return RunEnd(stopped(self.parts.world.config))
            value = awaited.value

    @property
    def _is_recorded(self) -> bool:
        """Whether the capacity of uploads is recorded, and may be 0 for ever."""
        world = self.parts.world
        return world.config.devices.links is not None or not world.environment.has_path_loss

    def _refuse_to_wait(self) -> NoReturn:
        """Raise `EdgesimError` for a process that waits for an event that never comes."""
        now_s = self.parts.clock.now
        if not self._is_recorded:
            refuse(self.parts.world.config.round, f"waits for an event that never comes, at {now_s:g} s")
        raise EdgesimError(
            f"from {now_s:g} s on, the recorded capacity is 0 for ever, and no upload can end; end the run earlier "
            '(stop_at_s) or repeat the recorded capacity (after_end = "wrap")'
        ) from None

    def _ended(self, reason: str) -> RunEnd:
        """End a run whose rounds are over; what happens at this instant with no delay still happens."""
        clock, availability = self.parts.clock, self.parts.world.availability
        while not clock.is_between_events:
            clock.step()
        if self._stop is None and reason != ALL_DONE and np.isfinite(availability.known_until_s):
            availability.refuse_time_beyond()
        return RunEnd(reason)

    def _run(self, numbers: Iterator[RoundNumber]) -> Generator[simpy.Event | Decision | RunProgress, Any, str]:
        """Run the rounds, each of which ends with its progress; returns the reason of the run's end."""
        goal = self.parts.world.config.stop_at_accuracy
        for number in numbers:
            # Several tests may have come in one step, and the last of them need not be the best.
            if goal is not None and (why := self.parts.evaluations.why_enough(goal)):
                return why
            reason = yield from watched_step(self.process, self.parts, number)
            if reason is not None:
                return reason
            if self.parts.clock.now > LAST_S:
                raise EdgesimError(
                    f"round {number.round} ended at {self.parts.clock.now:.4g} s, beyond the {LAST_S:g} s (317 years) "
                    "that can be simulated; lower learning.steps, learning.epochs, or devices.a_s_per_sample"
                )
            if number.last_of_frame:
                self.parts.learner.end_frame()
            self.number = number
            accuracy, spent = self.parts.evaluations.accuracy, self.parts.report.spent
            yield RunProgress(number.round, self.parts.clock.now, accuracy, **vars(spent))
        return ALL_DONE

    def stop(self) -> None:
        """End the run: break off the work in flight and write the rows that are missing."""
        now_s = self.parts.clock.now
        self.parts.evaluations.end(now_s)
        self.parts.report.end(now_s, self.process.break_off())
