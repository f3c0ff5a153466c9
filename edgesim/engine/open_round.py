"""State of one synchronous round in flight."""

import time
from dataclasses import dataclass, field

import numpy as np
import simpy

from edgesim.base.arrays import Integers
from edgesim.engine.at_work import Working
from edgesim.engine.ended_work import EndedWork, ended_work
from edgesim.engine.known_work import KnownWork
from edgesim.engine.process import RoundNumber
from edgesim.engine.work import Outcome
from edgesim.learning.interface import TrainingRound
from edgesim.learning.jobs import Promise


@dataclass
class OpenRound:
    """Tasks of a round in flight, and the reports and arrivals so far."""

    number: RoundNumber
    t_start_s: float
    tmax_s: float
    """Length of the round up to its deadline, in seconds."""
    deadline_s: float
    candidates: Integers
    """Checked-in devices that join, ascending."""
    training: TrainingRound
    jobs_before: int
    """Jobs that had run before the round."""
    closed: simpy.Event
    decision: simpy.Event
    all_reported: simpy.Event
    known: KnownWork | None = None
    """The work of the round where it is known ahead; None where it is `working`."""
    working: dict[int, Working] = field(default_factory=dict)
    """Devices that began to work in the round, by id."""
    reports: set[int] = field(default_factory=set)
    """Devices whose computing is done."""
    selected: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Devices taken, in the order of the decision."""
    arrived: set[int] = field(default_factory=set)
    """Devices whose updates have arrived or, where nothing is sent, that have computed."""
    closes_with: int | None = None
    """Number of arrivals that closes the round; None where only the deadline does."""
    infeasible_share: float | None = None
    """Share of the checked-in devices whose least bandwidth is above the band or that have not reported in time; None
    where admission is by count."""
    station_candidates: list[int] = field(default_factory=list)
    """Devices in each station's cell among those that the decision considers; empty where tasks keep their stations."""
    wall_s: dict[str, float] = field(default_factory=dict)
    checked_in: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Candidates, devices that do not join, and those still at work for an earlier round, ascending."""
    over: list[Working] = field(default_factory=list)
    """Latecomers of earlier rounds whose work ended in this one; filled at its close."""
    fates: list[Outcome | None] = field(default_factory=list)
    """Outcomes at the close of the devices taken."""

    @property
    def began(self) -> Integers:
        """Devices that began to work in the round, ascending."""
        return np.array(list(self.working), dtype=np.int64) if self.known is None else self.known.began

    @property
    def fates_now(self) -> list[Outcome | None]:
        """Outcomes of the devices taken, once the round is closed."""
        if self.known is not None:
            return self.known.fates
        return [working.task.fate for working in self.working.values() if working.task.taken]

    @property
    def lost(self) -> list[Promise]:
        """Jobs of work that is over and was computed, and whose updates did not arrive."""
        if self.known is not None:
            return self.known.lost
        return [at.promise for at in (*self.over, *self.working.values()) if at.is_lost]

    @property
    def bandwidth_hz(self) -> float:
        """Sum of the bandwidths granted."""
        if self.known is not None:
            return self.known.bandwidth_hz
        return sum([working.task.grant.bandwidth_hz for working in self.working.values()])

    def ended(self) -> EndedWork:
        """Work whose rows are those of the round, once it is closed."""
        if self.known is not None:
            return self.known.ended
        here = [at.task for at in self.working.values() if not at.task.carried]
        return ended_work([at.task for at in self.over] + here)

    def timed(self, part: str) -> "_Timed":
        """Add the wall time of a block to a part of this round."""
        return _Timed(self.wall_s, part)


class _Timed:
    """Adds the wall time of a block to a part of a round; `contextlib` would take several times as long."""

    __slots__ = ("_part", "_started", "_wall_s")

    def __init__(self, wall_s: dict[str, float], part: str) -> None:
        self._wall_s, self._part = wall_s, part

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._wall_s[self._part] = self._wall_s.get(self._part, 0.0) + time.perf_counter() - self._started
