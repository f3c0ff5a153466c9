"""An actor of the `ray` back end, which trains one job after another as `loop` would on its node."""

import pickle
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edgesim.base.errors import EdgesimError
from edgesim.cluster.code import Code, place
from edgesim.learning.back_ends.job_process import Arrays, Done, Failure, Order, done, job_of
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.flat import FlatModel
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import device_kind, reproducible


class JobActor:
    """Trains jobs in a process of its own on some node."""

    def __init__(self) -> None:
        self._loop: LoopBackEnd | None = None
        self._device = torch.device("cpu")

    def begin(self, code: Code, parts: bytes, data: dict[str, Any], gpus: float) -> str:
        """Make the model; returns the kind of torch and processor, by which the last bits of results may differ.

        ``parts`` are, pickled, what makes the module, whether it is of mixed precision, and the local half.
        """
        place(code)
        build, mixed, local = pickle.loads(parts)
        self._device = torch.device("cuda" if gpus else "cpu")
        if 0 < gpus < 1:
            torch.cuda.set_per_process_memory_fraction(gpus)
        with reproducible(self._device), warnings.catch_warnings():
            # The images stay in the object store, which all actors of a node share, and nothing writes to them.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            images = DeviceData.of_arrays(data, self._device)
            self._loop = LoopBackEnd(FlatModel(build(), self._device, mixed), images, local)
        return f"torch {torch.__version__} on {device_kind(self._device)}"

    def train(
        self, order: Order, names: Sequence[str], *shared: NDArray[np.generic]
    ) -> tuple[NDArray[np.generic], Done] | Failure:
        """Run a job: its update, [P], and the rest of its result; ``shared`` are tensors that the order leaves out, by
        their ``names``.
        """
        assert self._loop is not None
        own = partial(own_tensors, device=self._device)
        job = job_of(order, own(dict(zip(names, shared, strict=True))), own)
        try:
            with reproducible(self._device):
                result = self._loop.train(job)
        except EdgesimError as error:
            return Failure(error)
        return result.update.cpu().numpy(), done(result)

    def is_there(self) -> bool:
        """Answer a ping, also while a job trains."""
        return True


def version_here() -> tuple[str]:
    """Version of edgesim that is installed on a node."""
    return (metadata.version("edgesim"),)


def own_tensors(arrays: Arrays, device: torch.device) -> dict[str, Tensor]:
    """Copies of arrays as tensors on a device."""
    return {name: own_tensor(array, device) for name, array in arrays.items()}


def own_tensor(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """A copy of an array, which may be of the object store and must not be written to, as a tensor on a device."""
    return torch.from_numpy(np.array(array, order="K")).to(device)
