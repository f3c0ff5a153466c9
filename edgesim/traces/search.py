"""How far a search for the next available device goes, and what is told of one that takes long."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from edgesim.config import YEAR_S, AvailabilityConfig

_SECONDS_BEFORE_WORDS = 2.0


@dataclass(frozen=True)
class Search:
    """Limit of searches in simulated time, and the listener that is told of long ones."""

    limit_s: float = AvailabilityConfig().searched_s
    tell: Callable[[str], None] = lambda _: None

    def begin(self, what: str) -> "Steps":
        """A search for ``what``; empty for one that is too short to tell of."""
        return Steps(self, what, time.monotonic())


@dataclass(frozen=True)
class Steps:
    """One search."""

    search: Search
    what: str
    begun_s: float
    """By the monotonic clock."""

    def step(self, t_s: float) -> None:
        """The search has come to an instant of simulated time."""
        if self.what and time.monotonic() - self.begun_s > _SECONDS_BEFORE_WORDS:
            self.search.tell(f"looking for {self.what}, at {t_s / YEAR_S:.3g} years")
