"""The devices at work under any protocol, and the records from which their work is taken up again."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from edgesim.engine.clock import Clock
from edgesim.engine.shared_band import SharedBand
from edgesim.engine.uplink import Band
from edgesim.engine.work import RoundSignals, Task, Work
from edgesim.learning.jobs import Promise


@dataclass(slots=True)
class Working:
    """A device at work."""

    task: Task
    promise: Promise
    """The job of the task."""
    work: Work
    version: int = 0
    """Models that its server had made before the one that it started from."""
    arrived: bool = False
    """Whether an upload has arrived that went on after the close of the round in which it began."""


@dataclass(frozen=True)
class AtWork:
    """What a `Working` is made of again."""

    task: Task
    promise: Promise
    version: int
    arrived: bool
    deadline_s: float
    """Deadline of its upload, and how close to that an end counts as the deadline itself."""
    tolerance_s: float
    place: int
    """Place of its upload among those that share a band anew, whose weights are added up in that order; else -1."""


def written_down(bands: Sequence[Band], working: Iterable[Working]) -> list[AtWork]:
    """Records of devices at work, in their order, as they are between two events."""
    places: dict[int, int] = {}
    for band in bands:
        if isinstance(band, SharedBand):
            for place, upload in enumerate(band.active):
                band.write_down(upload)
                places[id(upload)] = place
    return [
        AtWork(one.task, one.promise, one.version, one.arrived, *one.work.due, places.get(id(one.task.upload), -1))
        for one in working
    ]


def taken_up(clock: Clock, records: Sequence[AtWork], signals: Callable[[AtWork], RoundSignals]) -> list[Working]:
    """Devices at work that go on from their records, in their order, on a clock and bands that know nothing of them."""
    works = {id(one): Work(clock, one.task, signals(one)) for one in sorted(records, key=lambda one: one.place)}
    return [Working(one.task, one.promise, works[id(one)], one.version, one.arrived) for one in records]
