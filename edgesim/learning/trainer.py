"""Training jobs as promises, and what every back end that fulfils them offers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from edgesim.arrays import Integers
from edgesim.errors import Diverged


@dataclass(frozen=True, eq=False)
class Job:
    """Local training of one device in one round; its result depends on these and the start weights alone."""

    device: int
    round: int
    seed: int
    """Of everything random within the job: dropout masks."""
    samples: Integers
    """Training samples in order of use."""
    edges: Integers
    """Where steps begin and end among the samples, [steps + 1]."""
    lr: float
    momentum: float
    changes: Integers | None = None
    """How each sample's image is augmented (`edgesim.learning.augmentation`), [n, 3]; as it is when absent."""
    proximal: float = 0.0
    """Weight of the term that holds the weights near the start ones, see `edgesim.learning.local_sgd.train`."""
    weight_decay: float = 0.0


@dataclass(frozen=True, eq=False)
class Result:
    """What a job brought."""

    update: Tensor
    """Trained weights minus start weights, [P]."""
    loss: float
    accuracy: float
    update_norm: float
    """Norm of the trainable part of the update."""
    loss_rms: float
    """Of single samples, see `edgesim.learning.local_sgd.moving_rms`."""


@dataclass(eq=False)
class Promise:
    """A job that runs, if ever, when its result is first wanted."""

    job: Job
    start: Tensor
    """Weights from which the job starts, [P]."""
    due: bool = False
    """Whether the device's simulated work is finished."""
    result: Result | None = None


class BackEnd(Protocol):
    """A way to fulfil promises; all ways bring the same results, up to rounding."""

    name: str

    def run(self, promises: Sequence[Promise]) -> int:
        """Fulfil the promises that have no result yet; returns how many jobs that took.

        Raises `Diverged` when a loss is not finite, and `EdgesimError` when memory or a process is lost.
        """

    def close(self) -> None:
        """Give back what the back end holds; it cannot run again."""


def wanted(promises: Sequence[Promise]) -> list[Promise]:
    """The promises without a result, each once."""
    return list({id(promise): promise for promise in promises if promise.result is None}.values())


def diverged(job: Job, step: int) -> Diverged:
    """The error of a job whose loss is not finite in a step, from 1."""
    return Diverged(
        f"device {job.device}, round {job.round}, step {step}: the training loss "
        f"is not finite (lr {job.lr:g}); lower learning.lr"
    )
