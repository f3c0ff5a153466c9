"""What the server asks of a protocol, with rounds or without."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

import simpy

from edgesim.config import RunConfig
from edgesim.engine.work import Task
from edgesim.learning.interface import Evaluation
from edgesim.traces.search import Search


@dataclass(frozen=True)
class RoundNumber:
    """Where a round, or the making of a model, stands in the run."""

    round: int
    """Over the whole run, from 1."""
    frame: int
    round_in_frame: int
    rounds_in_frame: int
    """FedTeddi's K_l: the configured rounds, or floor(stop_at_s / tmax_s) when only the time is given."""
    last_of_frame: bool

    @property
    def place(self) -> list[Any]:
        """Frame, round in the frame, and whether it is the frame's last: what a checkpoint keeps of it."""
        return [self.frame, self.round_in_frame, self.last_of_frame]


Step = Generator[simpy.Event, Any, tuple[str | None, Evaluation | None]]
"""The making of one model: why it cannot be made, which ends the run, or None; and the last evaluation in its course,
if there was one."""


class RunProtocol(Protocol):
    """How models are made, one after another; it holds what the server carries from one to the next."""

    def step(self, number: RoundNumber) -> Step:
        """Make the next model and write its rows."""

    def lasting(self) -> dict[str, Any]:
        """What it remembers from one model to the next, as records that `edgesim.base.saved` can pack."""

    def go_on(self, remembered: dict[str, Any]) -> None:
        """Go on, in a run set forward to that instant, with what the protocol of another remembered."""

    def break_off(self) -> list[Task]:
        """End all work, since the run is over; tasks that have no rows yet."""


def stopped(config: RunConfig) -> str:
    """The reason of a run that ended at its ``stop_at_s``."""
    return f"stop_at_s = {config.stop_at_s:g}; a round in flight then has no row, its work is cancelled"


def too_few_left(config: RunConfig, search: Search) -> str:
    """The reason of a run that no device, or not enough of them, can ever go on with."""
    charged = "" if config.devices.battery_j is None else " and charged"
    return (
        f"fewer than {config.round.min_candidates} devices are ever available{charged} again, as far as was searched "
        f"({search.told})"
    )
