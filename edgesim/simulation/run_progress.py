"""Progress of a run in rounds or in simulated seconds, and its messages to the display."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from edgesim.config import RunConfig
from edgesim.folder.run_progress import RunProgress
from edgesim.screen.progress import ROUNDS, SECONDS, Extent, Message

_SECONDS_BETWEEN_MESSAGES = 0.2


@dataclass
class Listener:
    """Sends messages on a run's progress, at most a few times a second."""

    run: str
    send: Callable[[Message], None]
    unit: str
    last: RunProgress | None = None
    """The last round done."""
    sent_s: float = 0.0
    """Time of the last message on a round, by the monotonic clock, in seconds."""

    def on_start(self, what: str) -> None:
        """Send what the run is preparing or looking for."""
        self._send(what)

    def on_note(self, about: str, note: str) -> None:
        """Send a note that the user should read."""
        self.send(Message(self.run, 0, 0.0, note, about))

    def on_round(self, done: RunProgress) -> None:
        """Send that the run finished a round."""
        now_s, self.last = time.monotonic(), done
        if now_s - self.sent_s >= _SECONDS_BETWEEN_MESSAGES:
            self.sent_s = now_s
            self._send(describe(done, self.unit))

    def on_end(self) -> None:
        """Send the last round, which the messages of the rounds before it may have held back."""
        if self.last is not None:
            self._send(describe(self.last, self.unit))

    def _send(self, text: str) -> None:
        rounds, t_s = (0, 0.0) if self.last is None else (self.last.round, self.last.t_s)
        self.send(Message(self.run, rounds, t_s, text))


def describe(done: RunProgress, unit: str = ROUNDS) -> str:
    """The unit, accuracy if evaluated, and what the progress in ``unit`` does not say: simulated time, or the round."""
    accuracy = "" if done.accuracy is None else f"accuracy {done.accuracy:.3f}, "
    return f"{unit}, {accuracy}" + (f"t = {done.t_s:,.1f} s" if unit == ROUNDS else f"round {done.round:,}")


def extent(config: RunConfig) -> Extent:
    """Where a complete config ends a run: after its rounds or, if only ``stop_at_s`` does, after simulated seconds."""
    if config.rounds is None:
        return Extent(math.ceil(config.stop_at_s or 0.0), SECONDS)
    return Extent(config.expected_rounds, ROUNDS)
