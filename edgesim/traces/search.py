"""How far a search for the next available device goes, and messages about one that takes long."""

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
    """Simulated time that is searched."""
    until_s: float = np.inf
    """Last instant of the run: what comes behind it makes no difference."""
    report: Callable[[str], None] = lambda _: None
    """Takes messages about searches that last long."""
    given_up: str = ""
    """How far the last search went that was given up, and what would help; empty if none was. No answer goes by it."""
    drawn: int = 0
    """Draws of all searches until now."""

    def begin(self, what: str) -> Callable[[float], None]:
        """Begin a search for ``what``; returns what is to be called with each instant, in s, that it comes to."""
        begun_s = time.monotonic()

        def step(t_s: float) -> None:
            if time.monotonic() - begun_s > _SECONDS_BEFORE_MESSAGES:
                self.report(f"looking for {what}, at {span(t_s)}")

        return step

    def end_s(self, t_s: ArrayLike) -> Floats:
        """Last instants that searches from ``t_s``, a scalar or [n], look at."""
        return np.minimum(np.asarray(t_s, dtype=np.float64) + self.limit_s, self.until_s)

    def nothing_s(self, t_s: ArrayLike) -> Floats:
        """What searches from ``t_s``, a scalar or [n], answer that found nothing up to their ends.

        inf, and an instant behind ``until_s`` where that has ended them.
        """
        asked_s = np.asarray(t_s, dtype=np.float64)
        cut = asked_s + self.limit_s > self.until_s
        return np.where(cut, np.maximum(np.nextafter(self.until_s, np.inf), asked_s), np.inf)

    def give_up(self, t_s: float, remedy: str) -> None:
        """Note that a search was given up at an instant, and what may help besides."""
        self.given_up = (
            f"up to {span(t_s)} of the {span(self.limit_s)} of availability.search_s, since the search took too many "
            f"steps; {remedy}, or lower round.min_candidates"
        )

    @property
    def told(self) -> str:
        """How far was searched, as the end of a sentence that says that nothing was found."""
        return self.given_up or f"{span(self.limit_s)}, availability.search_s"


def span(seconds: float) -> str:
    """A length of time in the largest unit of which there is at least one."""
    for unit, length_s in (("years", YEAR_S), ("days", 86_400.0), ("hours", 3600.0)):
        if seconds >= length_s:
            return f"{seconds / length_s:.4g} {unit}"
    return f"{seconds:.4g} s"
