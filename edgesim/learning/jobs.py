"""Training jobs as promises: what a job is, what it brings, and what every back end that fulfils promises offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn, Protocol

import numpy as np

from edgesim.base.arrays import Booleans, Integers, Numbers
from edgesim.base.errors import Diverged
from edgesim.learning.algorithms.algorithm import Algorithm, Outputs, Phase, Trained, whole

if TYPE_CHECKING:
    from torch import Tensor


OptimiserKind = Literal["sgd", "adam"]


@dataclass(frozen=True)
class Optimiser:
    """SGD as `torch.optim.SGD` has it, or Adam as `torch.optim.Adam` does, which has no ``momentum``."""

    lr: float
    momentum: float
    weight_decay: float = 0.0
    clip_norm: float | None = None
    """Largest norm of a gradient before weight decay is added; any when absent."""
    persist_momentum: bool = False
    """Whether devices keep their velocities for their next jobs."""
    kind: OptimiserKind = "sgd"


@dataclass(frozen=True, eq=False)
class Job:
    """Local training of one device; its result depends on this record and on the algorithm alone."""

    device: int
    round: int
    seed: int
    """Of everything random within the job: dropout masks."""
    phases: tuple[Phase, ...]
    given: Mapping[str, Tensor]
    """``start``, the start weights [P], and by name what else the algorithm gives."""
    optimiser: Optimiser
    passed: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Samples over which the trained model passes, [n]: `Algorithm.passes_over`."""
    velocity: Tensor | None = None
    """Velocity with which SGD begins, [trainable]; zero when absent."""
    held_out: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Samples on which the model is tested after each of `epochs`, [n]; where there are none, an epoch's accuracy is of
    the samples that it trains on."""

    @property
    def start(self) -> Tensor:
        """Weights from which the job starts, [P]."""
        return self.given["start"]

    @property
    def samples(self) -> Integers:
        """Training samples of all phases in order of use, [n]."""
        if len(self.phases) == 1:
            return self.phases[0].samples
        return np.concatenate([phase.samples for phase in self.phases])

    @property
    def edges(self) -> Integers:
        """Where the steps of all phases begin and end among the samples, [steps + 1]."""
        if len(self.phases) == 1:
            return self.phases[0].edges
        origins = np.cumsum([0, *(len(phase.samples) for phase in self.phases)])
        ends = [origin + phase.edges[1:] for origin, phase in zip(origins, self.phases, strict=False)]
        return np.concatenate([[0], *ends])

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """First step, from 0, and step behind the last of each epoch whose accuracy is asked for."""
        found, origin = list[tuple[int, int]](), 0
        for phase in self.phases:
            if phase.epoch_ends is not None:
                ends = (origin + phase.epoch_ends).tolist()
                found += zip([origin, *ends], ends, strict=False)
            origin += len(phase.edges) - 1
        return found

    @property
    def measured(self) -> Booleans | None:
        """Which steps loss and accuracy are of, [steps]: those on the device's own samples. None where that is all of
        them, or where no step is, whose job is measured on public images instead.
        """
        public = [phase.public for phase in self.phases]
        if all(public) or not any(public):
            return None
        return ~np.repeat(public, [len(phase.edges) - 1 for phase in self.phases])

    @property
    def changes(self) -> Numbers | None:
        """How the image of each sample is augmented, [n, k]; None where no image is."""
        from edgesim.learning.augmentation import unchanged

        some = [phase.changes.shape[1] for phase in self.phases if phase.changes is not None]
        as_it_is = unchanged(some[0]) if some else ()
        return _joined([(len(phase.samples), phase.changes) for phase in self.phases], as_it_is)

    @property
    def rows(self) -> Numbers | None:
        """`Phase.rows` of all phases, [n]; None where no phase has any."""
        return _joined([(len(phase.samples), phase.rows) for phase in self.phases], -1)


def _joined(parts: Sequence[tuple[int, Numbers | None]], absent: int | tuple[float, ...]) -> Numbers | None:
    """Arrays of so many rows behind one another, ``absent`` for the rows of one that is None; None if all are."""
    some = [part for _, part in parts if part is not None]
    if len(parts) == 1 or not some:
        return parts[0][1]
    filled = np.asarray(absent, dtype=some[0].dtype)
    return np.concatenate(
        [np.broadcast_to(filled, (length, *filled.shape)) if part is None else part for length, part in parts]
    )


@dataclass(frozen=True, eq=False)
class JobResult:
    """What a job brought."""

    update: Tensor
    """Trained weights minus start weights, [P]; the merge of it may change it."""
    loss: float
    """Mean over the samples of the steps `Job.measured`, as they were trained on; so the accuracy."""
    accuracy: float
    update_norm: float
    """Norm of the trainable part of the update."""
    loss_rms: float
    """Of single samples of these steps, see `edgesim.learning.local_sgd.moving_rms`."""
    up: Mapping[str, Tensor] = field(default_factory=dict)
    """What the device sends beside the update."""
    keeps: Mapping[str, Tensor] = field(default_factory=dict)
    """What the device keeps for its next job."""
    velocity: Tensor | None = None
    """Velocity that SGD ended with, [trainable]; None unless the device keeps it."""
    epoch_accuracies: tuple[float, ...] = ()
    """Of each of `Job.epochs`."""


@dataclass(eq=False)
class Promise:
    """The work of a device in one task: a job that runs, if ever, when its result is first wanted."""

    device: int
    round: int
    """Round in which it began; without rounds, the model that was being made."""
    job: Job | None = None
    """None in timing-only runs."""
    task: int = 0
    """Number of the task among the device's own, which tells its draws apart."""
    due: bool = False
    """Whether the device's simulated work is finished."""
    result: JobResult | None = None
    samples: int = 0
    """Size of the device's data set as the job began."""
    class_counts: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Samples of each class in it, [C]."""
    sent: Tensor | None = None
    """The model that the device was sent, [P], where the job starts from weights that the device kept."""

    @property
    def origin(self) -> Tensor | None:
        """The model to which the update is added, [P]: that which the device was sent; None in timing-only runs."""
        if self.sent is not None or self.job is None:
            return self.sent
        return self.job.start


class Arrived(NamedTuple):
    """An update that reached the server."""

    promise: Promise
    staleness: int = 0
    """Models made between the one that it started from and the current one."""
    picked: bool = True
    """Whether the policy picked it among those that arrived."""


class BackEnd(Protocol):
    """A way to fulfil promises; all ways bring the same results, up to rounding."""

    name: str

    @property
    def facts(self) -> Mapping[str, str]:
        """What ``run.json`` says of it beside its name."""

    def run(self, promises: Sequence[Promise]) -> int:
        """Fulfil the promises that have no result yet; returns how many jobs that took.

        Raises `Diverged` when a loss is not finite, and `EdgesimError` when memory or a process is lost.
        """

    def close(self) -> None:
        """Give back what the back end holds; it cannot run again."""


def wanted(promises: Sequence[Promise]) -> list[tuple[Promise, Job]]:
    """The promises without a result, each once, with their jobs."""
    once = {id(promise): promise for promise in promises if promise.result is None}.values()
    return [(promise, promise.job) for promise in once if promise.job is not None]


class Passes(Protocol):
    """What a job can tell of the samples that it passes over once it is trained, as `Trained` says."""

    def gradient(self) -> Tensor:
        """At the start weights, [trainable]."""

    def outputs(self, update: Tensor) -> tuple[Outputs, Tensor]:
        """Of the model trained by ``update``, [P], with the labels, [n]."""


def finished(algorithm: Algorithm, job: Job, trained: JobResult, velocity: Tensor, passes: Passes) -> JobResult:
    """What a job brought, with what its device sends and keeps beside the update."""
    if job.optimiser.persist_momentum:
        trained = replace(trained, velocity=velocity.clone())
    sent = algorithm.sent(_trained(job, trained, passes.gradient, partial(passes.outputs, trained.update)))
    if not (sent.up or sent.keeps):
        return trained
    return replace(trained, up=_apart(sent.up, trained.update), keeps=_apart(sent.keeps, trained.update))


def known(algorithm: Algorithm, job: Job, result: JobResult) -> dict[str, Tensor]:
    """What the server has of a device beside its update: what was sent, and what it works out itself."""
    return {**result.up, **algorithm.derived(_trained(job, result, _of_the_device, _of_the_device))}


def _trained(
    job: Job, result: JobResult, gradient: Callable[[], Tensor], outputs: Callable[[], tuple[Outputs, Tensor]]
) -> Trained:
    optimiser = job.optimiser
    return Trained(result.update, job.given, len(job.edges) - 1, optimiser.lr, optimiser.momentum, gradient, outputs)


def _of_the_device() -> NoReturn:
    raise RuntimeError("only a device can pass over its data")


def _apart(tensors: dict[str, Tensor], update: Tensor) -> dict[str, Tensor]:
    """Tensors that hold no larger one in memory, and no part of the update: a merge may change that."""
    place = update.untyped_storage().data_ptr()
    return {
        name: tensor.clone() if tensor.untyped_storage().data_ptr() == place else whole(tensor)
        for name, tensor in tensors.items()
    }


def diverged(job: Job, step: int) -> Diverged:
    """The error of a job whose loss is not finite in a step, from 1."""
    return Diverged(
        f"device {job.device}, round {job.round}, step {step}: the training loss "
        f"is not finite (lr {job.optimiser.lr:g}); lower learning.lr"
    )
