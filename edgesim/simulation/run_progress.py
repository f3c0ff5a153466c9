"""Progress of a run in rounds, and its messages to the display."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from edgesim.config import RunConfig
from edgesim.folder.run_progress import RunProgress
from edgesim.screen.progress import Message

_SECONDS_BETWEEN_MESSAGES = 0.2


@dataclass
class Listener:
    """Sends messages on a run's progress, at most a few times a second."""

    run: str
    config: RunConfig
    send: Callable[[Message], None]
    rounds: int = 0
    """Rounds done."""
    sent_s: float = 0.0
    """Time of the last message on a round, by the monotonic clock, in seconds."""

    def on_start(self, what: str) -> None:
        """Send what the run is preparing or looking for."""
        self.send(Message(self.run, self.rounds, what))

    def on_note(self, about: str, note: str) -> None:
        """Send a note that the user should read."""
        self.send(Message(self.run, 0, note, about))

    def on_round(self, done: RunProgress) -> None:
        """Send that the run finished a round."""
        now_s, self.rounds = time.monotonic(), rounds_done(self.config, done.round, done.t_s)
        if now_s - self.sent_s >= _SECONDS_BETWEEN_MESSAGES:
            self.sent_s = now_s
            self.send(Message(self.run, self.rounds, describe(done)))


def describe(done: RunProgress) -> str:
    """Accuracy, if evaluated, and simulated time."""
    accuracy = "" if done.accuracy is None else f"accuracy {done.accuracy:.3f}, "
    return f"{accuracy}t = {done.t_s:,.1f} s"


def expected_rounds(config: RunConfig) -> int:
    """Rounds of a complete config, for a progress bar; a lower bound if only ``stop_at_s`` ends the run.

    A single number of rounds counts for one frame, since the number of frames is not known before the data are read.
    """
    if config.rounds is None:
        return int((config.stop_at_s or 0.0) / config.round.tmax_s + 1e-9)
    return sum(config.rounds) if isinstance(config.rounds, list) else config.rounds


def rounds_done(config: RunConfig, round: int, t_s: float) -> int:
    """Progress of a run in units of `expected_rounds`: rounds, or deadlines passed if only ``stop_at_s`` ends it."""
    return round if config.rounds is not None else int(t_s / config.round.tmax_s + 1e-9)
