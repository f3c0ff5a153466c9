"""Memory that a server needs for its state and training, checked before the run against its budget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.learning.algorithms import Halves
from edgesim.learning.algorithms.merge_rules import MergeRule
from edgesim.learning.algorithms.server_half import TrainingBytes
from edgesim.learning.flat import FlatModel
from edgesim.learning.tensors import DeviceData
from edgesim.learning.transforms.transform import Transform


@dataclass(frozen=True)
class ServerMemory:
    """Memory of a server in bytes, without the model and a round's updates."""

    device: int
    """State of each device that was ever merged, on the server and on the device together."""
    devices: int
    """Most devices that the run can merge."""
    making: int = 0
    """Bytes for images that the server makes: their generator and its training, the images, and a model's training."""
    passes: int = 0
    """Most bytes of passes of models over these images."""
    room: int = 0
    """Bytes of the budget that are left for passes of models."""

    @property
    def total(self) -> int:
        """Most bytes that are needed."""
        return self.device * self.devices + self.making + self.passes

    def message(self) -> str:
        """The most memory that is needed, as a sentence, for a server that trains by a pool of models."""
        pool = (
            f"state of {self.devices} devices, with the server's pool of their models: up to "
            f"{_mib(self.device * self.devices)} MiB"
        )
        if not self.passes:
            return pool
        return (
            f"{pool}; generated images and training on them {_mib(self.making)}, passes of the pool over these "
            f"{_mib(self.passes)}; together {_mib(self.total)}"
        )


def server_memory(
    config: RunConfig,
    halves: Halves,
    transforms: Sequence[Transform],
    rule: MergeRule,
    frames: int,
    model: FlatModel,
    data: DeviceData,
) -> ServerMemory:
    """Memory of the server of a run over ``frames`` frames.

    Raises `EdgesimError` where that is more than ``learning.memory_budget_mib``, or the server cannot train.
    """
    learning, (local, server) = config.learning, halves
    kept = [tensor.numel() for tensor in local.first_kept(model.weights).values()]
    sizes: list[str | int] = ["trainable"] * sum(transform.stored for transform in transforms)
    sizes += [*server.stored, *("model" if count == len(model.weights) else count for count in kept)]
    device = sum(_bytes(size, model) for size in sizes) + learning.persist_momentum * model.gradient.nbytes
    devices = int(min(_most_merged(config, rule, frames), config.devices.count))
    training = TrainingBytes()
    if server.training is not None:
        training = server.training.memory(config, model, data, devices)
    budget = learning.memory_budget_mib << 20
    carried = _carries(config) * model.weights.nbytes
    room = budget - (device + carried) * devices - training.making
    if room < training.least:
        _refuse(device + carried, devices, training.making + training.least, sizes, config)
    return ServerMemory(device, devices, training.making, min(training.most, room), room)


def _bytes(size: str | int, model: FlatModel) -> int:
    """Bytes of a tensor that is stored, of a size as in `Stored`."""
    named = {"model": model.weights.nbytes, "trainable": model.gradient.nbytes}
    return named[size] if isinstance(size, str) else int(size) * model.weights.itemsize


def _carries(config: RunConfig) -> bool:
    """Whether devices keep their weights over rounds that are skipped."""
    return config.merging is not None and config.merging.skip == "carry"


def _most_merged(config: RunConfig, rule: MergeRule, frames: int) -> float:
    """Most updates that a run can merge, or remember as lost; inf where its config sets no limit."""
    rounds, knobs = config.rounds, config.round
    if rounds is None or knobs.count is None or (config.upload is not None and config.upload.lost == "add"):
        return math.inf
    taken = rule.updates_per_model or math.ceil(knobs.over_commitment * knobs.count)
    return taken * (rounds * frames if isinstance(rounds, int) else sum(rounds))


def _mib(count: int) -> str:
    return f"{count / 2**20:,.4g}"


def _refuse(device: int, devices: int, more: int, sizes: Sequence[str | int], config: RunConfig) -> None:
    learning, count = config.learning, config.devices.count
    tables = sum(isinstance(size, str) for size in sizes)
    kinds = [f"{tables} x the model"] * bool(tables) + ["tensors sent beside it"] * (tables < len(sizes))
    kinds += ["learning.persist_momentum's velocity"] * learning.persist_momentum
    kinds += ["the weights that merging.skip = 'carry' keeps"] * _carries(config)
    those = f"all {count}" if devices == count else f"the {devices} of {count} that its rounds can merge"
    residuals = config.upload is not None and config.upload.feedback != "none"
    without = ", or set upload.feedback = 'none', which takes one of these less" * residuals
    made = f" and {_mib(more)} MiB for generated images and a pass of one model over them" * (more > 0)
    raise EdgesimError(
        f"algorithm: stores {_mib(device)} MiB for each device ({' and '.join(kinds)}), "
        f"{_mib(device * devices + more)} MiB for {those}{made}, above learning.memory_budget_mib = "
        f"{learning.memory_budget_mib}; raise it or choose a smaller learning.model{without}",
        "algorithm.name",
        "learning.memory_budget_mib",
        *["upload.feedback"] * residuals,
    )
