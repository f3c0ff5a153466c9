"""The base of server halves of algorithms: the work of a server, and what it sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np

from edgesim.base.arrays import Floats, Integers, repeated
from edgesim.learning.algorithms.records import Arrivals, Device, Devices, Sizes, State, Workbench
from edgesim.learning.torch_types import Tensor, torch
from edgesim.streams import Streams

if TYPE_CHECKING:
    from edgesim.config import RunConfig
    from edgesim.learning.flat import FlatModel
    from edgesim.learning.tensors import DeviceData

Merges = Literal["models", "models and more", "updates", "all arrivals", "otherwise"]
"""What a server makes its state of. ``models``: the weighted mean of models is all its state; ``models and more``: its
model is that mean, and its state has more; ``updates``: updates enter the state by their weighted mean alone; ``all
arrivals``: it merges in every round, those without arrivals included, and also updates that the policy did not pick."""


def merges_models(merges: Merges) -> bool:
    """Whether a server's model is the weighted mean of models, which a mean over more models may replace."""
    return merges in ("models", "models and more")


EQUAL = "equal, by the algorithm's own rule"
BY_NORMS = "the updates"
BY_CLASSES = "the classes of all devices"

Size = Literal["model", "trainable"] | int
"""Size of a tensor: a model [P], its trainable part, or so many values."""


@dataclass(frozen=True)
class TrainingBytes:
    """Memory for a server's training on images that it makes, in bytes."""

    making: int = 0
    """Bytes for the images: their generator and its training, the images, and a model's training."""
    least: int = 0
    """Bytes of a pass of one model over the images."""
    most: int = 0
    """Most bytes of a pass of all models."""


class ServerTraining(Protocol):
    """Training after a merge that takes simulated time, or memory beside the model's."""

    def server_s(self, updates: int) -> float:
        """Simulated seconds on so many updates of a round."""

    def memory(self, config: RunConfig, model: FlatModel, data: DeviceData, models: int) -> TrainingBytes:
        """Memory for passes of so many models; raises `EdgesimError` for a model or data that it cannot train with."""


@dataclass
class Around:
    """Ledger of a server half around another one, whose own ledger is what local halves see."""

    inner: Any


class ServerHalf:
    """Server half of an algorithm; its answers are those of FedAvg. An object holds options and no state.

    Unless models travel (`Options.sends_models`) it sends and merges no model.
    """

    merges: ClassVar[Merges] = "otherwise"
    """What the state is made of; it decides which servers, noise and other halves the server goes with."""
    weighs_by: str = ""
    """What the weights of updates go by. Empty: the option ``weights``; `EQUAL`: all count alike; `BY_NORMS` and
    `BY_CLASSES`: that, too. Any other text is for ``run.json``."""
    stored: tuple[Size, ...] = ()
    """Tensors stored for each device that was ever merged, beside those that the device keeps."""
    training: ServerTraining | None = None
    """Training that takes simulated time or memory; None where there is none."""

    def __init__(self, options: Any, sizes: Sizes, streams: Streams) -> None:
        self.options = options
        self.sizes = sizes
        self.streams = streams

    @property
    def pooled_up(self) -> Mapping[str, int]:
        """Number of values of each tensor sent beside an update that a pool of updates stores, too, by name."""
        return {}

    # What the radio and the tables need: NumPy alone.

    def ledger(self, round: int, last: Any) -> Any:
        """Records of arrays and numbers that other answers use, for a frame whose first round is ``round``.

        ``last`` are those with which the frame before ended, None in the first.
        """
        return last

    def download_bits(self, devices: Devices, round: int, ledger: Any) -> Floats:
        """Bits that the server sends to each device, [n]; a device that gets 0 waits for no broadcast."""
        return repeated(self.sizes.model_bits * self.options.sends_models, len(devices.ids))

    def weigh(self, arrived: Arrivals) -> Floats:
        """alpha_n of each update in a round, [S]: D_n / sum of D (FedTeddi, eq. 3), times the weight of its age."""
        return normalised(counts(self, arrived.samples) * arrived.age_weight)

    def report(self, ledger: Any, arrived: Arrivals) -> dict[tuple[str, str], float]:
        """Rows of ``metrics`` on a round that is about to be merged, by (name, key)."""
        return {}

    def note(self, ledger: Any, arrived: Arrivals) -> Floats:
        """Note in the ledger, in place, that a round was merged; returns each update's weight in the model, [S]."""
        assert arrived.alpha is not None
        return arrived.alpha

    # What trains, in the process of the run.

    def start(self, weights: Tensor, bench: Workbench) -> State:
        """State of a server before the first round, of start weights [P]; its model may have learned more."""
        return State(weights)

    def prepare(self, state: Any, bench: Workbench) -> Any:
        """The state from which the jobs of a round, or of a model, begin, with what the server computes for them."""
        return state

    def given(self, state: Any, device: Device, ledger: Any) -> dict[str, Tensor]:
        """Tensors of a job by name: ``start``, its start weights [P], and whatever else training needs.

        Those that the device keeps join them. An empty tensor stands for a model that would be one of the local half's
        `teachers`, and that this job does without.
        """
        return {"start": state.weights, **state.shared}

    def merge(self, state: Any, arrived: Arrivals, alpha: Floats, ledger: Any) -> State:
        """The server's next state: w + the sum of alpha_n times update n, rows in the order of the sum.

        Buffers become the mean of the values that devices ended with, by the same weights, whatever the sum of these
        is. Unless models travel the state stays as it is.
        """
        before: State = state
        if not self.options.sends_models:
            return before
        change = mean_change(arrived, alpha)
        change[self.sizes.parameters :] /= float(alpha.sum())
        return replace(before, weights=before.weights + change)

    def refine(self, state: Any, arrived: Arrivals, ledger: Any, bench: Workbench) -> Any:
        """The state after a merge, improved by training at the server, and with all it makes of a pool of models."""
        return state


def counts(server: ServerHalf, samples: Integers) -> Floats:
    """Weights of updates of devices with so many samples [n], ages not included, [n]."""
    options = server.options
    equal = server.weighs_by == EQUAL or not options.sends_models or options.weights == "equal"
    return repeated(1.0, len(samples)) if equal else np.asarray(samples, dtype=np.float64)


def normalised(counts: Floats) -> Floats:
    """Shares of the sum, [n]; empty for no rows."""
    return np.asarray(counts / counts.sum()) if len(counts) else np.empty(0)


def with_mean_buffers(parameters: Tensor, arrived: Arrivals) -> Tensor:
    """The model of trainable parameters [trainable] and the plain mean of the buffers that devices ended with, [P].

    For algorithms whose server corrects the trainable parameters alone.
    """
    assert arrived.updates is not None
    size = len(parameters)
    if size == arrived.updates.shape[1]:
        return parameters
    ends = [start[size:] + update[size:] for start, update in zip(arrived.starts, arrived.separate, strict=True)]
    return torch.cat([parameters, torch.stack(ends).mean(0)])


def rebased(updates: Sequence[Tensor], starts: Sequence[Tensor], model: Tensor, trainable: int) -> Tensor:
    """Updates as rows, [S, P], whose buffers are those after the devices' training minus those of a model [P].

    A weighted mean of the rows, added to the model, then has the mean of the *values* of buffers, whichever models the
    updates started from. A mean of their changes would add those of other models: a running variance can become
    negative by it. Where all started from the model itself, rows are the updates.
    """
    if not updates:
        return model.new_empty((0, len(model)))
    rows = torch.stack(list(updates))
    if trainable < len(model):
        rows[:, trainable:] += torch.stack([start[trainable:] for start in starts]) - model[trainable:]
    return rows


def mean_change(arrived: Arrivals, alpha: Floats, trainable: int | None = None) -> Tensor:
    """The sum of alpha_n times update n, [P], or without buffers, [trainable]; with the noise on it, if any."""
    assert arrived.updates is not None
    change = arrived.updates.new_tensor(alpha) @ arrived.updates[:, :trainable]
    if arrived.mean_noise is not None:
        change[: len(arrived.mean_noise)] += arrived.mean_noise
    return change


_STRETCH = 2**20
"""Numbers of a part that stays in a processor's last-level cache, 4 MB; sums of shorter parts are slower."""


def stretches(tensor: Tensor) -> Iterator[slice]:
    """Successive parts of a tensor [P] for sums of many tensors, which are added to one part before the next.

    The part's sum stays in the processor's cache, and each tensor is read from memory once. On an accelerator the whole
    tensor is one part.
    """
    length = _STRETCH if tensor.device.type == "cpu" else len(tensor)
    return (slice(start, start + length) for start in range(0, len(tensor), length))


def whole(tensor: Tensor) -> Tensor:
    """The tensor, or a copy where it keeps a larger one in memory: for tensors that outlive the round."""
    return tensor.clone() if tensor.untyped_storage().nbytes() > tensor.nbytes else tensor
