"""What each actor of the `ray` back end does: train one job after another, as `loop` would on its node."""

import pickle
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgesim.base.errors import EdgesimError
from edgesim.cluster.code import Code, place
from edgesim.learning.back_ends.job_process import Arrays, Failure, arrays_of
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import Job, JobResult
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import device_kind, reproducible


@dataclass(frozen=True)
class JobOrder:
    """A job but for the tensors that others are given too."""

    facts: dict[str, Any]
    given: Arrays
    velocity: Arrays
    names: Sequence[str]
    """Of all that is given, in the job's order."""
    shared: Sequence[str]
    """Of what comes beside the order."""


@dataclass(frozen=True)
class Brought:
    """A result, as arrays."""

    update: NDArray[np.generic]
    figures: tuple[float, float, float, float]
    """Loss, accuracy, update norm and RMS loss."""
    up: Arrays
    keeps: Arrays
    velocity: Arrays
    """As ``velocity``, if the device keeps it."""
    epoch_accuracies: tuple[float, ...]

    def result(self, device: torch.device) -> JobResult:
        """With tensors on a device that share no memory with Ray's object store, which is thus given back."""
        up, keeps, velocity = (own_tensors(each, device) for each in (self.up, self.keeps, self.velocity))
        return JobResult(
            own_tensor(self.update, device), *self.figures, up, keeps, velocity.get("velocity"), self.epoch_accuracies
        )


class JobActor:
    """Lives in a process of its own on some node."""

    def __init__(self) -> None:
        self._loop: LoopBackEnd | None = None
        self._device = torch.device("cpu")

    def begin(self, code: Code, parts: bytes, data: dict[str, Any], gpus: float) -> str:
        """Make the model and get ready; answers on what jobs are trained here, by which their last bits may differ.

        ``parts`` are, pickled, what makes the module, whether it is of mixed precision, and the algorithm.
        """
        place(code)
        build, mixed, algorithm = pickle.loads(parts)
        self._device = torch.device("cuda" if gpus else "cpu")
        if 0 < gpus < 1:
            torch.cuda.set_per_process_memory_fraction(gpus)
        with reproducible(self._device), warnings.catch_warnings():
            # The images stay in the object store, which all actors of a node share, and nothing writes to them.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            images = DeviceData.of_arrays(data, self._device)
            self._loop = LoopBackEnd(FlatModel(build(), self._device, mixed), images, algorithm)
        return f"torch {torch.__version__} on {device_kind(self._device)}"

    def train(self, order: JobOrder, *shared: NDArray[np.generic]) -> Brought | Failure:
        """Run a job; ``shared`` are the tensors that the order does not hold."""
        assert self._loop is not None
        given = own_tensors(order.given | dict(zip(order.shared, shared, strict=True)), self._device)
        begun = own_tensors(order.velocity, self._device).get("velocity")
        job = Job(**order.facts, given={name: given[name] for name in order.names}, velocity=begun)
        try:
            with reproducible(self._device):
                result = self._loop.train(job)
        except EdgesimError as error:
            return Failure(error)
        velocity = {} if result.velocity is None else {"velocity": result.velocity}
        up, keeps, kept = sent_arrays(result.up), sent_arrays(result.keeps), sent_arrays(velocity)
        figures = result.loss, result.accuracy, result.update_norm, result.loss_rms
        return Brought(result.update.cpu().numpy(), figures, up, keeps, kept, result.epoch_accuracies)

    def is_there(self) -> bool:
        """That the process still answers, also while it trains."""
        return True


def version_here() -> str:
    """Of edgesim, on a node."""
    return metadata.version("edgesim")


def order_of(job: Job, shared: Sequence[str]) -> JobOrder:
    """A job as an order, without what is ``shared``."""
    facts = {name: value for name, value in vars(job).items() if name not in ("given", "velocity")}
    given = {name: tensor for name, tensor in job.given.items() if name not in shared}
    velocity = {} if job.velocity is None else {"velocity": job.velocity}
    return JobOrder(facts, sent_arrays(given), sent_arrays(velocity), [*job.given], shared)


def sent_arrays(tensors: Any) -> Arrays:
    """Tensors by name, of any device, as arrays."""
    return arrays_of({name: tensor.cpu() for name, tensor in tensors.items()})


def own_tensors(arrays: Arrays, device: torch.device) -> dict[str, Tensor]:
    """Copies of arrays as tensors on a device."""
    return {name: own_tensor(array, device) for name, array in arrays.items()}


def own_tensor(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """A copy of an array, which may be of the object store and must not be written to, as a tensor on a device."""
    return torch.from_numpy(np.array(array, order="K")).to(device)
