"""What a process of the `workers` back end does: train one job after another."""

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch
from torch import Tensor, nn

from edgesim.errors import EdgesimError
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.flat import FlatModel
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import reproducible

READY = "ready"


@dataclass(frozen=True)
class Failure:
    """An error that the user is to read."""

    error: EdgesimError


Report = str | Failure | tuple[float, float, float, float]
"""`READY`, a failure, or loss, accuracy, update norm and RMS loss of a job."""


@dataclass(frozen=True)
class Share:
    """What a worker gets from its parent."""

    connection: Connection
    build: Callable[[], nn.Module]
    data: DeviceData
    mixed: bool
    start: Tensor
    """Start weights of the job that comes, [P], in shared memory."""
    update: Tensor
    """Where to write the update of a job, [P], in shared memory."""


def serve(share: Share) -> None:
    """Train every job that comes through the connection; ends when the parent does."""
    cpu = torch.device("cpu")
    with reproducible(cpu):
        loop = LoopBackEnd(FlatModel(share.build(), cpu, share.mixed), share.data)
        try:
            share.connection.send(READY)
            while True:
                share.connection.send(_train(loop, share))
        except (EOFError, OSError):
            # The parent has gone.
            return


def _train(loop: LoopBackEnd, share: Share) -> Report:
    job = share.connection.recv()
    try:
        result = loop.train(job, share.start)
    except EdgesimError as error:
        return Failure(error)
    share.update.copy_(result.update)
    return result.loss, result.accuracy, result.update_norm, result.loss_rms
