"""A process of the `workers` back end, which trains one job after another, and how jobs and results travel."""

import pickle
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from edgesim.base.errors import EdgesimError
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job, JobResult
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import reproducible


@dataclass(frozen=True)
class Failure:
    """Error of a job, which is raised in the run's process."""

    error: EdgesimError


Arrays = dict[str, NDArray[np.generic]]
"""Tensors as arrays, which go through a connection: torch would put each into shared memory of its own."""
Order = tuple[dict[str, Any], Arrays, Arrays]
"""A job's fields that are no tensors, the tensors that it is given, and its velocity as `velocity_of` has it."""
_TENSORS = ("given", "update", "up", "keeps", "velocity")
"""Fields of a job and of its result that hold tensors."""


@dataclass(frozen=True)
class Done:
    """A job's result without its update, tensors as arrays."""

    facts: dict[str, Any]
    """Fields of the `JobResult` that are no tensors, by name."""
    up: Arrays
    keeps: Arrays
    velocity: Arrays
    """Velocity by the name ``velocity``; empty unless the device keeps it."""

    def result(self, update: Tensor, tensors: Callable[[Arrays], dict[str, Tensor]]) -> JobResult:
        """The result with its ``update``, [P]; ``tensors`` makes tensors of arrays."""
        velocity = tensors(self.velocity).get("velocity")
        return JobResult(update, **self.facts, up=tensors(self.up), keeps=tensors(self.keeps), velocity=velocity)


def done(result: JobResult) -> Done:
    """A result without its update, in the form that is sent to another process."""
    return Done(facts_of(result), arrays_of(result.up), arrays_of(result.keeps), velocity_of(result))


Report = Literal["ready"] | Failure | Done
"""Message of a worker process: it is ready, or a job ended."""


@dataclass(frozen=True)
class ProcessShare:
    """Arguments of a worker process."""

    build: Callable[[], nn.Module]
    data: DeviceData
    mixed: bool
    local: LocalHalf
    start: Tensor
    """Start weights of the next job, [P], in memory shared with the run's process."""
    update: Tensor
    """Memory for the update of a job, [P], shared with the run's process."""


def serve(connection: Connection, share: ProcessShare) -> None:
    """Train every job that comes through the connection, until it is closed."""
    cpu = torch.device("cpu")
    with reproducible(cpu):
        loop = LoopBackEnd(FlatModel(share.build(), cpu, share.mixed), share.data, share.local)
        try:
            send(connection, "ready")
            while True:
                send(connection, _train(loop, share, connection.recv()))
        except (EOFError, OSError):
            # The parent has gone.
            return


def _train(loop: LoopBackEnd, share: ProcessShare, order: Order) -> Report:
    try:
        result = loop.train(job_of(order, {"start": share.start}, tensors_of))
    except EdgesimError as error:
        return Failure(error)
    share.update.copy_(result.update)
    return done(result)


def send(connection: Connection, message: object) -> None:
    """Send an object without tensors, 6 us faster than `Connection.send`: a whole job may take less than 1 ms."""
    connection.send_bytes(pickle.dumps(message))


def order_of(job: Job, apart: Collection[str]) -> Order:
    """A job as it is sent to another process, without the tensors that ``apart`` names, which come otherwise.

    Empty arrays, which take as long as full ones, are left out: they are a job's defaults.
    """
    facts = {name: value for name, value in facts_of(job).items() if not isinstance(value, np.ndarray) or len(value)}
    given = arrays_of({name: tensor for name, tensor in job.given.items() if name not in apart})
    return facts, given, velocity_of(job)


def job_of(order: Order, apart: Mapping[str, Tensor], tensors: Callable[[Arrays], dict[str, Tensor]]) -> Job:
    """The job of an order, with the tensors that came apart; ``tensors`` makes tensors of arrays."""
    facts, given, velocity = order
    return Job(**facts, given={**tensors(given), **apart}, velocity=tensors(velocity).get("velocity"))


def facts_of(record: Job | JobResult) -> dict[str, Any]:
    """Fields of a job or of its result that are no tensors, by name."""
    return {name: value for name, value in vars(record).items() if name not in _TENSORS}


def velocity_of(record: Job | JobResult) -> Arrays:
    """The velocity of a job or of its result by the name ``velocity``; empty where it has none."""
    return {} if record.velocity is None else arrays_of({"velocity": record.velocity})


def arrays_of(tensors: Mapping[str, Tensor]) -> Arrays:
    """Tensors by name as arrays; those on the CPU share their memory."""
    return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}


def tensors_of(arrays: Arrays) -> dict[str, Tensor]:
    """Arrays as tensors that share their memory."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
