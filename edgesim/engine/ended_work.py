"""What devices did in tasks that have ended, as columns from which rows are written."""

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from edgesim.activities import ACTIVITIES, DOWNLOAD
from edgesim.base.arrays import Floats, Integers
from edgesim.engine.work import Task

NUMBER_OF = {name: number for number, name in enumerate(ACTIVITIES)}
"""Number of each activity in the columns."""


class Brought(NamedTuple):
    """Facts on the task that brought an update to its server."""

    key: tuple[int, int]
    """Device and number of the task."""
    server: int
    station: int
    bits: float
    """Bits of the update."""
    duration_s: float
    """From the task's start to the update's arrival, in s."""
    airtime_s: float
    """Seconds of its upload on the air."""

    @classmethod
    def of(cls, task: Task) -> "Brought":
        """Facts on a task whose update is at its server."""
        first, last = task.spans[0], task.spans[-1]
        lasted_s = last.t_end_s + task.backhaul_s - (first.t_start_s - task.broadcast_s)
        return cls(task.key, task.server, task.station, task.grant.bits, lasted_s, task.airtime_s)


class EndedWork(NamedTuple):
    """Tasks that have rows of ``activities``, [T], by device, and these rows, [R]."""

    device: Integers
    """Device of each task, [T]."""
    number: Integers
    """Number of each task's draws, [T]."""
    station: Integers
    """Station of each task, [T]."""
    rows: Integers
    """How many rows each task has, [T]."""
    activity: Integers
    """`NUMBER_OF` each row, [R]."""
    t_start_s: Floats
    t_end_s: Floats
    outcome: Sequence[str]
    bits: Floats
    bandwidth_hz: Floats
    down_bits: float
    """Bits of the models that the devices were sent, in full where receiving them takes no time."""
    tasks: Sequence[Task] = ()
    """The tasks, where their weights may have been kept: [T], else empty."""


def ended_work(ended: Sequence[Task]) -> EndedWork:
    """Columns of tasks that have ended."""
    tasks = sorted([task for task in ended if task.spans], key=attrgetter("device"))
    spans = [span for task in tasks for span in task.spans]
    of_task = [(task.device, task.number, task.station, len(task.spans)) for task in tasks]
    device, number, station, rows = np.array(of_task, dtype=np.int64).reshape(-1, 4).T.copy()
    of_row = [(span.t_start_s, span.t_end_s, span.bits, span.bandwidth_hz) for span in spans]
    begin_s, end_s, bits, bandwidth_hz = np.array(of_row, dtype=np.float64).reshape(-1, 4).T.copy()
    return EndedWork(
        device,
        number,
        station,
        rows,
        np.array([NUMBER_OF[span.activity] for span in spans], dtype=np.int64),
        begin_s,
        end_s,
        [span.outcome for span in spans],
        bits,
        bandwidth_hz,
        sum([task.download_bits if task.download_s == 0 else _received_bits(task) for task in ended]),
        tasks,
    )


def _received_bits(task: Task) -> float:
    return sum([span.bits for span in task.spans if span.activity == DOWNLOAD])
