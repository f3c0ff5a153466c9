"""Interface between the server and the process that makes the models of a run, with rounds or without."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import simpy

from edgesim.config import RoundConfig, RunConfig
from edgesim.engine.decisions import Decision
from edgesim.engine.ended_work import EndedWork
from edgesim.traces.search import Search


@dataclass(frozen=True)
class RoundNumber:
    """Position of a round in the run; without rounds, of the making of a model."""

    round: int
    """Number over the whole run, from 1."""
    frame: int
    round_in_frame: int
    rounds_in_frame: int
    """FedTeddi's K_l: the configured rounds, or floor(stop_at_s / tmax_s) when only the time is given."""
    last_of_frame: bool

    @property
    def place(self) -> list[Any]:
        """Frame, round in the frame, and whether it is the frame's last, as checkpoints hold them."""
        return [self.frame, self.round_in_frame, self.last_of_frame]


Answer = TypeVar("Answer")
Steps = Generator[simpy.Event | Decision, Any, Answer]
"""Part of a process, which yields the events that it waits for, and decisions while they are open."""
Step = Steps[str | None]
"""Process that makes one model; returns the reason why it cannot, which ends the run, or None."""


Wanted = Callable[[int, RoundConfig], int | None]
"""Function of a protocol: `edgesim.engine.protocols.protocol.Protocol.wanted`."""


@runtime_checkable
class Process(Protocol):
    """Makes one model after another, and holds the state from one to the next."""

    def step(self, number: RoundNumber) -> Step:
        """Make the next model and write its rows."""

    def snapshot(self) -> dict[str, Any]:
        """Snapshot of the state between two models, as records that `edgesim.base.saved` can pack."""

    def restore(self, remembered: dict[str, Any]) -> None:
        """Restore a result of `snapshot`, in a run whose clock stands at its instant."""

    def break_off(self) -> EndedWork:
        """End all work, since the run is over; returns the work without rows."""


def stopped(config: RunConfig) -> str:
    """Reason of the end of a run that reached its ``stop_at_s``."""
    return f"stop_at_s = {config.stop_at_s:g}; a round in flight then has no row, its work is cancelled"


def too_few_left(config: RunConfig, search: Search) -> str:
    """Reason of the end of a run for which too few devices will ever be available again."""
    charged = "" if config.devices.battery_j is None else " and charged"
    return (
        f"fewer than {config.round.min_candidates} devices are ever available{charged} again, as far as was searched "
        f"({search.extent})"
    )
