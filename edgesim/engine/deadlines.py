"""Deadlines of rounds, fixed or moving."""

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from edgesim.config import RoundConfig


@dataclass
class Deadlines:
    """Length of the rounds, and how many have followed each other without a pause.

    The clock's sum over their lengths would drift from the multiples of the deadline, at which slots of availability
    have edges.
    """

    SAVED: ClassVar[tuple[str, ...]] = ("tmax_s", "start_s", "rounds")

    tmax_s: float
    """Seconds from the start of the next round to its deadline."""
    start_s: float = 0.0
    """Start of the first of these rounds, in s."""
    rounds: int = 0

    def next_due_s(self, now_s: float) -> float:
        """Deadline of a round that begins now, in seconds on the run's clock."""
        if self.start_s + self.rounds * self.tmax_s != now_s:
            self.start_s, self.rounds = now_s, 0
        self.rounds += 1
        return self.start_s + self.rounds * self.tmax_s

    def move(self, length_s: float) -> None:
        """Set the length of the next round, after one that lasted ``length_s``."""


@dataclass
class MovingDeadlines(Deadlines):
    """Lengths that follow those of the rounds before."""

    a: float = 0.0

    @override
    def move(self, length_s: float) -> None:
        """(1 - a) D_round + a D_avg, which is also the next average (REFL, section 4.1)."""
        tmax_s = (1.0 - self.a) * length_s + self.a * self.tmax_s
        if tmax_s != self.tmax_s:
            self.tmax_s, self.rounds = tmax_s, 0


def make_deadlines(knobs: RoundConfig) -> Deadlines:
    """The deadlines of a run's rounds."""
    if knobs.moving_deadline is None:
        return Deadlines(knobs.tmax_s)
    return MovingDeadlines(knobs.tmax_s, a=knobs.moving_deadline)
