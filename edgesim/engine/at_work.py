"""Devices at work under any protocol, and the records from which a resumed run restores them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from edgesim.engine.clock import Clock
from edgesim.engine.phases import ENDED
from edgesim.engine.uplink import Band
from edgesim.engine.work import RoundSignals, Task, Work
from edgesim.learning.charges import DownloadCharges
from edgesim.learning.jobs import Promise


@dataclass(slots=True)
class Working:
    """A device at work, with its task and its training job."""

    task: Task
    promise: Promise
    """The job of the task."""
    work: Work
    version: int = 0
    """Number of models that its server had made before the one that it started from."""
    arrived: bool = False
    """Whether an upload that went on after its round's close has arrived."""

    @property
    def is_lost(self) -> bool:
        """Whether the work is over and its update, which the device has computed, did not arrive."""
        task = self.task
        return bool(task.taken and self.promise.due and task.phase == ENDED and task.fate != "done")

    def note_version(self, charges: DownloadCharges) -> None:
        """Note the version of the model that the device has received, if it has."""
        if self.task.has_received:
            charges.received(self.task.device, self.version)


@dataclass(frozen=True)
class AtWork:
    """Record from which a `Working` is restored."""

    task: Task
    promise: Promise
    version: int
    arrived: bool
    deadline_s: float
    """Deadline of its upload, and how close to that an end counts as the deadline itself."""
    tolerance_s: float
    place: int
    """Position of its upload on a re-shared band, which adds up weights in that order; -1 elsewhere."""


def snapshot(bands: Sequence[Band], working: Iterable[Working]) -> list[AtWork]:
    """Record the devices at work between two events, in their order."""
    places = {id(upload): place for band in bands for place, upload in enumerate(band.in_order())}
    return [
        AtWork(at.task, at.promise, at.version, at.arrived, *at.work.due, places.get(id(at.task.upload), -1))
        for at in working
    ]


def restore(clock: Clock, records: Sequence[AtWork], signals: Callable[[AtWork], RoundSignals]) -> list[Working]:
    """Restore devices at work from their records, in their order, on a clock and bands without events of theirs."""
    works = {id(at): Work(clock, at.task, signals(at)) for at in sorted(records, key=lambda at: at.place)}
    return [Working(at.task, at.promise, works[id(at)], at.version, at.arrived) for at in records]
