"""Limits of searches for the next available device, and messages about searches that last long."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Floats
from edgesim.config import YEAR_S, AvailabilityConfig

DRAW_LIMIT = 25_000_000
"""Draws of one search, after which it is given up: one to eight seconds, by the model."""

_SECONDS_BEFORE_MESSAGES = 2.0


@dataclass
class Search:
    """Limits of a run's searches, and where messages about long ones go."""

    limit_s: float = AvailabilityConfig().searched_s
    """Simulated time that a search covers at most."""
    until_s: float = np.inf
    """Last instant of the run; searches end there."""
    report: Callable[[str], None] = lambda _: None
    """Takes messages about searches that last long."""
    given_up: str = ""
    """Extent of the last search that was given up, and a remedy, for messages; empty if none was given up."""
    drawn: int = 0
    """Number of draws of all searches so far."""

    def begin(self, what: str) -> Callable[[float], None]:
        """Begin a search for ``what``; returns a function to call with each instant, in s, that is reached."""
        begun_s = time.monotonic()

        def step(t_s: float) -> None:
            if time.monotonic() - begun_s > _SECONDS_BEFORE_MESSAGES:
                self.report(f"looking for {what}, at {span(t_s)}")

        return step

    def end_s(self, t_s: ArrayLike) -> Floats:
        """Last instants, in s, that searches from ``t_s``, a scalar or [n], look at."""
        return np.minimum(np.asarray(t_s, dtype=np.float64) + self.limit_s, self.until_s)

    def nothing_s(self, t_s: ArrayLike) -> Floats:
        """Answers, in s, of searches from ``t_s``, a scalar or [n], that ended without a result.

        inf, or an instant behind ``until_s`` where that has ended them.
        """
        asked_s = np.asarray(t_s, dtype=np.float64)
        cut = asked_s + self.limit_s > self.until_s
        return np.where(cut, np.maximum(np.nextafter(self.until_s, np.inf), asked_s), np.inf)

    def give_up(self, t_s: float, remedy: str) -> None:
        """Note that a search was given up at the instant ``t_s``; ``remedy`` is advice for the message."""
        self.given_up = (
            f"up to {span(t_s)} of the {span(self.limit_s)} of availability.search_s, since the search took too many "
            f"steps; {remedy}, or lower round.min_candidates"
        )

    @property
    def extent(self) -> str:
        """Time that the searches covered, as the end of a sentence in a message."""
        return self.given_up or f"{span(self.limit_s)}, availability.search_s"


def span(seconds: float) -> str:
    """A length of time in the largest unit of which there is at least one."""
    for unit, length_s in (("years", YEAR_S), ("days", 86_400.0), ("hours", 3600.0)):
        if seconds >= length_s:
            return f"{seconds / length_s:.4g} {unit}"
    return f"{seconds:.4g} s"
