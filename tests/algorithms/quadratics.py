"""Runs of an algorithm on devices whose loss is a (w - b)^2 / 2, so that every model can be worked out by hand.

An algorithm is asked in the order in which a learner asks it. SGD with momentum is written here once more, in float64.
Without momentum, K steps from w_0 by a pull mu (w - w_0) alone end at
w_0 + (1 - (1 - lr (a + mu))^K) a (b - w_0) / (a + mu).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.algorithms.kpfl import Kpfl
from edgesim.learning.algorithms.kpfl_settings import KpflOptions
from edgesim.learning.algorithms.local_half import has_own
from edgesim.learning.algorithms.records import (
    Arrivals,
    Device,
    Devices,
    Phase,
    Pull,
    Samples,
    Sent,
    Sizes,
    State,
    Trained,
)
from edgesim.learning.algorithms.server_half import BY_NORMS, rebased
from edgesim.learning.batches import epoch_edges
from edgesim.streams import Streams


@dataclass(frozen=True)
class Quadratic:
    """A device whose loss is ``curvature`` / 2 times (w - ``best``)^2, in each weight."""

    best: float | Sequence[float]
    curvature: float = 1.0
    samples: int = 10
    moments: Sequence[float] = ()
    """What its buffers are after training, wherever they start."""

    def gradient(self, weights: Tensor) -> Tensor:
        """Of the loss, [trainable]."""
        return self.curvature * (weights - torch.tensor(self.best, dtype=torch.float64))


OWN = 1000
"""Where the numbers of a device's own samples begin, behind those of public images."""

TWO = (Quadratic(1.0), Quadratic(-2.0, curvature=3.0))
"""Of unlike curvature: their mean loss is least at -1.25."""
THREE_SIZES = (Quadratic(1.0, samples=40), Quadratic(-2.0, 3.0, samples=10), Quadratic(4.0, 0.5, samples=5))


@dataclass(frozen=True)
class Job:
    """One device's work, from its start on."""

    device: int
    version: int
    lr: float
    phases: tuple[Phase, ...]
    given: Mapping[str, Tensor]
    passed: np.ndarray


def ordered_epochs(stream: str, samples: np.ndarray, count: int, batch: int | None) -> Phase:
    """Epochs over the samples in their order, in steps on so many or, for None, on all of them."""
    size = len(samples)
    rows = np.tile(np.arange(size), count)
    return Phase(np.tile(samples, count), epoch_edges(size, count, batch or size), None, rows)


@dataclass
class Play:
    """A run of an algorithm over devices; ``lr`` may depend on the round."""

    kind: type[Algorithm]
    devices: Sequence[Any]
    options: dict[str, Any] = field(default_factory=dict)
    start: Sequence[float] = (0.0,)
    lr: float | Callable[[int], float] = 0.1
    steps: int = 2
    momentum: float = 0.0
    bench: Any = None
    """What the server trains with, if it does, and which public images there are."""
    seed: int = 0
    kpfl: dict[str, Any] | None = None
    """KPFL's options, if it is around the algorithm."""

    def __post_init__(self) -> None:
        weights = torch.tensor(self.start, dtype=torch.float64)
        trainable = len(weights) - len(getattr(self.devices[0], "moments", ()))
        classes, features = getattr(self.devices[0], "sizes", (0, 0))
        tensors = getattr(self.devices[0], "tensors", ())
        private, public = sum(each.samples for each in self.devices), self.bench.public if self.bench else ()
        counts = len(self.devices), classes, features, len(tensors), tensors, private, len(public)
        sizes = Sizes(32.0 * trainable, trainable, *counts)
        made = self.kind.Options(**self.options), sizes, Streams(self.seed)
        self.local, self.server = self.kind.Local(*made), self.kind.Server(*made)
        if self.kpfl is not None:
            self.server = Kpfl(self.server, KpflOptions(**self.kpfl), sizes, Streams(self.seed))
        self.opens_frame = True
        self.ledger = self.server.ledger(1, None)
        self.state: State = self.server.start(weights, self.bench)
        self.first_kept = self.local.first_kept(self.state.weights)
        self.kept: dict[int, Mapping[str, Tensor]] = {}
        self.merged = 0
        self.alpha: np.ndarray | None = None
        """What each update counted in the last merge."""

    def round(self, *ids: int, unpicked: Sequence[int] = (), failed: Sequence[int] = ()) -> float:
        """The first weight after a round in which ``ids`` arrive and are picked, and then those that are not picked.

        Devices that ``failed`` began, but nothing of theirs arrives.
        """
        return self.merge(self.begin(*ids), unpicked=self.begin(*unpicked), failed=failed)

    def end_frame(self) -> None:
        """A frame ends."""
        self.ledger, self.opens_frame = self.server.ledger(self.merged + 1, self.ledger), True

    @property
    def local_ledger(self) -> Any:
        """What devices see of the ledger."""
        return self.ledger.inner if self.kpfl is not None else self.ledger

    def begin(self, *ids: int) -> list[Job]:
        """Jobs that start from the current model."""
        lr = self.lr(self.merged + 1) if callable(self.lr) else self.lr
        made = []
        bench = self.bench or SimpleNamespace()
        bench.round, bench.opens_frame, self.opens_frame = self.merged + 1, self.opens_frame, False
        self.state = self.server.prepare(self.state, bench)
        counts = np.array([getattr(each, "class_counts", []) for each in self.devices], dtype=np.int64)
        sizes = np.array([each.samples for each in self.devices])
        self.local.begin(Devices(np.array(ids, dtype=np.int64), counts, sizes), self.merged + 1, self.local_ledger)
        for device in ids:
            samples = self.devices[device].samples
            about = Device(device, samples, self.merged + 1, sizes, samples)
            kept = self.kept.get(device, self.first_kept)
            given = {**self.server.given(self.state, about, self.ledger), **kept}
            own = Phase(np.full(self.steps, OWN), np.arange(self.steps + 1))
            public = self.bench.public if self.bench else np.empty(0, dtype=np.int64)
            samples = Samples(OWN + np.arange(self.devices[device].samples), public, ordered_epochs)
            phases = self.local.phases(own, about, samples, self.local_ledger)
            passed = self.local.passes_over(about, samples)
            made.append(Job(device, self.merged, lr, phases, given, passed))
        return made

    def merge(
        self,
        picked: Sequence[Job],
        age_weight: float = 1.0,
        alpha: Sequence[float] | None = None,
        unpicked: Sequence[Job] = (),
        failed: Sequence[int] = (),
    ) -> float:
        """Train, send and merge, rows in the order given; the first weight afterwards.

        Stale updates count ``age_weight``; ``alpha`` takes the place of the algorithm's own weights, as under a
        protocol without rounds.
        """
        jobs = [*picked, *unpicked]
        ends = [self._train(job) for job in jobs]
        sent = [self.local.sent(end) for end in ends]
        arrived = self._arrived(jobs, ends, sent, age_weight, len(picked), failed)
        self.alpha = self.server.weigh(arrived) if alpha is None else np.array(alpha)
        before = _copies(self.state)
        after = self.server.merge(self.state, arrived, self.alpha, self.ledger)
        torch.testing.assert_close(
            _copies(self.state), before, rtol=0, atol=0, equal_nan=True, msg="merge changed the old state"
        )
        self.state = self.server.refine(after, arrived, self.ledger, self.bench)
        self.alpha = self.server.note(self.ledger, replace(arrived, alpha=self.alpha))
        self.merged += 1
        self.kept |= {job.device: what.keeps for job, what in zip(jobs, sent, strict=True) if what.keeps}
        return float(self.state.weights[0])

    def _train(self, job: Job) -> Trained:
        device, start, trainable = self.devices[job.device], job.given["start"], self.local.sizes.parameters
        pull: Pull = self.local.pull(job.given)
        weights, velocity = start[:trainable].clone(), torch.zeros(trainable, dtype=torch.float64)
        steps = [(phase, *edges) for phase in job.phases for edges in itertools.pairwise(phase.edges)]
        own_loss = has_own(self.local, "loss")
        for phase, first, stop in steps:
            # A step takes all of a device's own samples, or those public ones that its phase names.
            samples, rows = phase.samples[first:stop], None if phase.rows is None else phase.rows[first:stop]
            holder = self.bench.part(samples) if samples[0] < OWN else device
            plain = holder.objective(weights, self.local, job.given, rows) if own_loss else device.gradient(weights)
            gradient = plain + pull.to_start * (weights - start[:trainable]) + pull.decay * weights
            if pull.shift is not None:
                gradient = gradient + pull.shift
            velocity = self.momentum * velocity + gradient
            weights = weights - job.lr * velocity
        end = torch.cat([weights, torch.tensor(getattr(device, "moments", ()), dtype=torch.float64)])
        at_start = partial(device.gradient, start[:trainable])
        holder = self.bench.part(job.passed) if len(job.passed) and job.passed[0] < OWN else device
        outputs = partial(holder.labelled_outputs, weights) if hasattr(holder, "labelled_outputs") else _no_samples
        return Trained(end - start, job.given, len(steps), job.lr, self.momentum, at_start, outputs)

    def _norms(self, ends: list[Trained]) -> np.ndarray:
        return np.array([float(end.update[: self.local.sizes.parameters].square().sum().sqrt()) for end in ends])

    def _arrived(
        self,
        jobs: Sequence[Job],
        ends: list[Trained],
        sent: list[Sent],
        age_weight: float,
        picked: int,
        failed: Sequence[int],
    ) -> Arrivals:
        sizes = np.array([device.samples for device in self.devices])
        ids = np.array([job.device for job in jobs], dtype=np.int64)
        staleness = np.array([self.merged - job.version for job in jobs], dtype=np.int64)
        updates, starts = [end.update for end in ends], [job.given["start"] for job in jobs]
        return Arrivals(
            ids=ids,
            samples=sizes[ids],
            round=self.merged + 1,
            began_in=np.array([job.version + 1 for job in jobs], dtype=np.int64),
            staleness=staleness,
            age_weight=np.where(staleness == 0, 1.0, age_weight),
            picked=np.arange(len(ids)) < picked,
            lr=np.array([job.lr for job in jobs]),
            began=np.array([*ids[staleness == 0], *failed], dtype=np.int64),
            all_samples=sizes,
            class_counts=np.array([getattr(self.devices[n], "class_counts", []) for n in ids], dtype=np.int64),
            round_lr=self.lr(self.merged + 1) if callable(self.lr) else self.lr,
            norms=self._norms(ends) if self.server.weighs_by == BY_NORMS else None,
            updates=rebased(updates, starts, self.state.weights, self.local.sizes.parameters),
            separate=updates,
            starts=starts,
            up={name: [what.up[name] for what in sent] for name in (sent[0].up if sent else ())},
            trained=ends,
        )


def _no_samples() -> NoReturn:
    raise AssertionError("a device with a loss in closed form has no samples")


def _copies(state: State) -> dict[str, Any]:
    """Copies of all tensors of a state, by the name of their field."""
    fields: dict[str, Any] = {}
    for name, value in vars(state).items():
        entries = value if isinstance(value, dict) else {"": value}
        fields |= {f"{name} {key}": entry.clone() for key, entry in entries.items() if isinstance(entry, Tensor)}
    return fields
