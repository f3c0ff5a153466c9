"""Training jobs, their results, the promises of them, and the interface of back ends that run jobs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NoReturn, Protocol

import numpy as np

from edgesim.base.arrays import Booleans, Integers, Numbers
from edgesim.base.errors import Diverged
from edgesim.learning.algorithms.records import Outputs, Phase, Trained
from edgesim.learning.torch_types import Tensor
from edgesim.radio.grant import Grant

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
    """Local training of one device; its result depends on this record and on the local half alone."""

    device: int
    round: int
    seed: int
    """Seed of everything random within the job, such as dropout masks."""
    phases: tuple[Phase, ...]
    given: Mapping[str, Tensor]
    """``start``, the start weights [P], and other tensors that the server gives or the device keeps, by name."""
    optimiser: Optimiser
    passed: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Samples over which the trained model passes, [n]: `LocalHalf.passes_over`."""
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
        """Edges of the steps of all phases among the samples, [steps + 1]."""
        if len(self.phases) == 1:
            return self.phases[0].edges
        origins = np.cumsum([0, *(len(phase.samples) for phase in self.phases)])
        ends = [origin + phase.edges[1:] for origin, phase in zip(origins, self.phases, strict=False)]
        return np.concatenate([[0], *ends])

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """First step, from 0, and step behind the last of each epoch whose accuracy is measured."""
        steps, origin = list[tuple[int, int]](), 0
        for phase in self.phases:
            if phase.epoch_ends is not None:
                ends = (origin + phase.epoch_ends).tolist()
                steps += zip([origin, *ends], ends, strict=False)
            origin += len(phase.edges) - 1
        return steps

    @property
    def measured(self) -> Booleans | None:
        """Steps that loss and accuracy are measured on, [steps]: those on the device's own samples.

        None where these are all steps, or none, when the job is measured on public images instead.
        """
        public = [phase.public for phase in self.phases]
        if all(public) or not any(public):
            return None
        return ~np.repeat(public, [len(phase.edges) - 1 for phase in self.phases])

    @property
    def changes(self) -> Numbers | None:
        """Augmentation of each sample's image, [n, k]; None where no image is augmented."""
        if len(self.phases) == 1:
            return self.phases[0].changes
        from edgesim.learning.augmentation import unchanged

        some = [phase.changes.shape[1] for phase in self.phases if phase.changes is not None]
        as_it_is = unchanged(some[0]) if some else ()
        return _joined([(len(phase.samples), phase.changes) for phase in self.phases], as_it_is)

    @property
    def rows(self) -> Numbers | None:
        """`Phase.rows` of all phases, [n]; None where no phase has any."""
        if len(self.phases) == 1:
            return self.phases[0].rows
        return _joined([(len(phase.samples), phase.rows) for phase in self.phases], -1)


def _joined(parts: Sequence[tuple[int, Numbers | None]], absent: int | tuple[float, ...]) -> Numbers | None:
    """Concatenation of (rows, array) parts, with ``absent`` in the rows of parts that are None; None if all are."""
    some = [part for _, part in parts if part is not None]
    if not some:
        return None
    filled = np.asarray(absent, dtype=some[0].dtype)
    return np.concatenate(
        [np.broadcast_to(filled, (length, *filled.shape)) if part is None else part for length, part in parts]
    )


@dataclass(frozen=True, eq=False)
class JobResult:
    """Result of a job."""

    update: Tensor
    """Trained weights minus start weights, [P]; a merge may change it in place."""
    loss: float
    """Mean over the samples of the steps `Job.measured`, as they were trained on; so the accuracy."""
    accuracy: float
    update_norm: float
    """Norm of the trainable part of the update."""
    loss_rms: float
    """Moving root mean square of single samples' losses in these steps, see `edgesim.learning.local_sgd.moving_rms`."""
    up: Mapping[str, Tensor] = field(default_factory=dict)
    """Tensors that the device sends beside the update, by name."""
    keeps: Mapping[str, Tensor] = field(default_factory=dict)
    """Tensors that the device stores for its next job, by name."""
    velocity: Tensor | None = None
    """Velocity that SGD ended with, [trainable]; None unless the device keeps it."""
    epoch_accuracies: tuple[float, ...] = ()
    """Accuracy of each of `Job.epochs`."""


@dataclass(eq=False)
class Promise:
    """The work of a device in one task: a job that runs when its result is first needed, if ever."""

    device: int
    round: int
    """Round in which the task began; without rounds, the number of the model that was being made."""
    built: Job | None = None
    """None in timing-only runs, and until `job` is first wanted."""
    task: int = 0
    """Number of the task among the device's own; each number has draws of its own."""
    server: int = 0
    """Server from whose model the job starts."""
    samples: int = 0
    """Size of the device's data set as the job began."""
    class_counts: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Samples of each class in the device's data set, [C]."""
    build: "Callable[[Sequence[Promise]], None] | None" = None
    """Builds the jobs of promises that began in one round; None where the job is built, or there is none."""
    due: bool = False
    """Whether the device's simulated work is finished."""
    result: JobResult | None = None
    grant: Grant | None = None
    """Upload of the result, once the band is shared; None for a device that was not taken."""
    merged: bool = False
    """Whether a model was made of its result."""
    sent: Tensor | None = None
    """The model that the device was sent, [P], where the job starts from weights that the device kept."""

    @property
    def job(self) -> Job | None:
        """The job, built when it is first wanted; None in timing-only runs."""
        if self.build is not None:
            build_jobs([self])
        return self.built

    @property
    def origin(self) -> Tensor | None:
        """The model to which the update is added, [P]: that which the device was sent; None in timing-only runs."""
        job = self.job
        return self.sent if self.sent is not None or job is None else job.start


def devices_and_tasks(promises: Sequence[Promise]) -> tuple[Integers, Integers]:
    """Devices of promises and the numbers of their tasks among each device's own, [n] each."""
    ids, tasks = (np.array([getattr(of, key) for of in promises], dtype=np.int64) for key in ("device", "task"))
    return ids, tasks


def build_jobs(promises: Iterable[Promise]) -> None:
    """Build the jobs of promises that lack them, those of one round at once.

    To be called before anything changes that they start from: what a device was sent or keeps, or its data.
    """
    by_round: dict[Callable[[Sequence[Promise]], None], dict[int, Promise]] = {}
    for promise in promises:
        if promise.build is not None:
            by_round.setdefault(promise.build, {})[id(promise)] = promise
    for build, lacking in by_round.items():
        build(list(lacking.values()))


class Arrived(NamedTuple):
    """An update that reached the server."""

    promise: Promise
    staleness: int = 0
    """Models made since the model that the job started from."""
    picked: bool = True
    """Whether the policy picked the update."""
    server: int | None = None
    """Server that merges the update; None for that from whose model the job started."""


class BackEnd(Protocol):
    """A way to fulfil promises; all ways bring the same results, up to rounding."""

    name: str

    @property
    def facts(self) -> Mapping[str, str]:
        """Entries of ``run.json`` about the back end, beside its name."""

    def run(self, promises: Sequence[Promise]) -> int:
        """Fulfil the promises that have no result yet; returns how many jobs that took.

        Raises `Diverged` when a loss is not finite, and `EdgesimError` when memory or a process is lost.
        """

    def close(self) -> None:
        """Free the resources of the back end, which cannot run again."""


def wanted(promises: Sequence[Promise]) -> list[tuple[Promise, Job]]:
    """Promises without a result, each once, with their jobs."""
    once = {id(promise): promise for promise in promises if promise.result is None}.values()
    build_jobs(once)
    return [(promise, promise.built) for promise in once if promise.built is not None]


def known(job: Job, result: JobResult) -> Trained:
    """The `Trained` of a job as the server knows it."""
    return trained_by(job, result, _refuse_pass, _refuse_pass)


def trained_by(
    job: Job, result: JobResult, gradient: Callable[[], Tensor], outputs: Callable[[], tuple[Outputs, Tensor]]
) -> Trained:
    """The `Trained` of a job and its result, with passes over the samples of `LocalHalf.passes_over`."""
    optimiser = job.optimiser
    return Trained(result.update, job.given, len(job.edges) - 1, optimiser.lr, optimiser.momentum, gradient, outputs)


def _refuse_pass() -> NoReturn:
    raise RuntimeError("only a device can pass over its data")


def diverged(job: Job, step: int) -> Diverged:
    """The error of a job whose loss is not finite in a step, from 1."""
    return Diverged(
        f"device {job.device}, round {job.round}, step {step}: the training loss "
        f"is not finite (lr {job.optimiser.lr:g}); lower learning.lr"
    )
