"""What each process of the `workers` back end does: train one job after another."""

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from edgesim.base.errors import EdgesimError
from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job, JobResult
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import reproducible


@dataclass(frozen=True)
class Failure:
    """An error that the user is to read."""

    error: EdgesimError


Arrays = dict[str, NDArray[np.generic]]
"""Tensors on their way through a connection: torch would put each into shared memory of its own."""


@dataclass(frozen=True)
class Done:
    """A result whose update is in shared memory."""

    figures: tuple[float, float, float, float]
    """Loss, accuracy, update norm and RMS loss."""
    up: Arrays
    keeps: Arrays
    velocity: Arrays
    """As ``velocity``, if the device keeps it."""
    epoch_accuracies: tuple[float, ...]


Report = Literal["ready"] | Failure | Done
"""That the process is ready, or how a job ended."""


@dataclass(frozen=True)
class ProcessShare:
    """What a process gets from its parent."""

    build: Callable[[], nn.Module]
    data: DeviceData
    mixed: bool
    algorithm: Algorithm
    start: Tensor
    """Start weights of the job that comes, [P], in shared memory."""
    update: Tensor
    """Where to write the update of a job, [P], in shared memory."""


def serve(connection: Connection, share: ProcessShare) -> None:
    """Train every job that comes through the connection, until it is closed."""
    cpu = torch.device("cpu")
    with reproducible(cpu):
        loop = LoopBackEnd(FlatModel(share.build(), cpu, share.mixed), share.data, share.algorithm)
        try:
            send(connection, "ready")
            while True:
                send(connection, _train(loop, share, *connection.recv()))
        except (EOFError, OSError):
            # The parent has gone.
            return


def _train(loop: LoopBackEnd, share: ProcessShare, facts: dict[str, Any], given: Arrays, velocity: Arrays) -> Report:
    given_here = tensors_of(given) | {"start": share.start}
    try:
        result = loop.train(Job(**facts, given=given_here, velocity=tensors_of(velocity).get("velocity")))
    except EdgesimError as error:
        return Failure(error)
    share.update.copy_(result.update)
    figures = result.loss, result.accuracy, result.update_norm, result.loss_rms
    more = arrays_of(result.up), arrays_of(result.keeps), _velocity_of(result)
    return Done(figures, *more, result.epoch_accuracies)


def send(connection: Connection, what: object) -> None:
    """Send something without tensors, 6 us faster than `Connection.send`: a whole job may take less than 1 ms."""
    connection.send_bytes(pickle.dumps(what))


def message(job: Job) -> tuple[dict[str, Any], Arrays, Arrays]:
    """What goes through the connection for a job: all but its start weights, which have a place in shared memory.

    What all jobs of a round are given alike travels with each of them. Empty arrays, which take as long as full ones,
    are left out: they are a job's defaults.
    """
    facts = {name: value for name, value in vars(job).items() if name not in ("given", "velocity")}
    given = arrays_of({name: tensor for name, tensor in job.given.items() if name != "start"})
    some = {name: value for name, value in facts.items() if not isinstance(value, np.ndarray) or len(value)}
    return some, given, _velocity_of(job)


def _velocity_of(of: Job | JobResult) -> Arrays:
    return {} if of.velocity is None else arrays_of({"velocity": of.velocity})


def arrays_of(tensors: Mapping[str, Tensor]) -> Arrays:
    """Tensors on the CPU as arrays that share their memory."""
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def tensors_of(arrays: Arrays) -> dict[str, Tensor]:
    """Arrays as tensors that share their memory."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
