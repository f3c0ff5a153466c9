"""Runs of an algorithm on devices whose loss is a (w - b)^2 / 2, so that every model can be worked out by hand.

An algorithm is asked in the order in which a learner asks it. SGD with momentum is written here once more, in float64.
Without momentum, K steps from w_0 by a pull mu (w - w_0) alone end at
w_0 + (1 - (1 - lr (a + mu))^K) a (b - w_0) / (a + mu).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from edgesim.algorithms.algorithm import Algorithm, Arrivals, Device, Phase, Pull, Sent, Sizes, State, Trained
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


TWO = (Quadratic(1.0), Quadratic(-2.0, curvature=3.0))
"""Of unlike curvature: their mean loss is least at -1.25."""


@dataclass(frozen=True)
class Job:
    """One device's work, from its start on."""

    device: int
    version: int
    lr: float
    phases: tuple[Phase, ...]
    given: Mapping[str, Tensor]


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
    """What the server trains with, if it does."""

    def __post_init__(self) -> None:
        weights = torch.tensor(self.start, dtype=torch.float64)
        trainable = len(weights) - len(getattr(self.devices[0], "moments", ()))
        classes, features = getattr(self.devices[0], "sizes", (0, 0))
        tensors = getattr(self.devices[0], "tensors", ())
        counts = len(self.devices), classes, features, len(tensors), tensors
        sizes = Sizes(32.0 * trainable, trainable, *counts)
        self.algorithm = self.kind(self.kind.Options(**self.options), sizes, Streams(0))
        self.ledger = self.algorithm.ledger(1)
        self.state: State = self.algorithm.start(weights)
        self.first_kept = self.algorithm.first_kept(weights)
        self.kept: dict[int, Mapping[str, Tensor]] = {}
        self.merged = 0
        self.alpha: np.ndarray | None = None
        """What each update counted in the last merge."""

    def round(self, *ids: int, unpicked: Sequence[int] = (), failed: Sequence[int] = ()) -> float:
        """The first weight after a round in which ``ids`` arrive and are picked, and then those that are not picked.

        Devices that ``failed`` began, but nothing of theirs arrives.
        """
        return self.merge(self.begin(*ids), unpicked=self.begin(*unpicked), failed=failed)

    def begin(self, *ids: int) -> list[Job]:
        """Jobs that start from the current model."""
        lr = self.lr(self.merged + 1) if callable(self.lr) else self.lr
        made = []
        self.state = self.algorithm.prepare(self.state, self.bench)
        for device in ids:
            total = sum(each.samples for each in self.devices)
            samples = self.devices[device].samples
            about = Device(device, samples, self.merged + 1, total, samples)
            given = self.algorithm.given(self.state, self.kept.get(device, self.first_kept), about, self.ledger)
            own = Phase(np.zeros(self.steps, dtype=np.int64), np.arange(self.steps + 1))
            made.append(Job(device, self.merged, lr, self.algorithm.phases(own, about), given))
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
        sent = [self.algorithm.sent(end) for end in ends]
        arrived = self._arrived(jobs, ends, sent, age_weight, len(picked), failed)
        self.alpha = self.algorithm.weigh(arrived) if alpha is None else np.array(alpha)
        before = _copies(self.state)
        after = self.algorithm.merge(self.state, arrived, self.alpha, self.ledger)
        torch.testing.assert_close(
            _copies(self.state), before, rtol=0, atol=0, equal_nan=True, msg="merge changed the old state"
        )
        self.algorithm.note(self.ledger, arrived)
        self.state = self.algorithm.refine(after, arrived, self.bench)
        self.merged += 1
        self.kept |= {job.device: what.keeps for job, what in zip(jobs, sent, strict=True) if what.keeps}
        return float(self.state.weights[0])

    def _train(self, job: Job) -> Trained:
        device, start, trainable = self.devices[job.device], job.given["start"], self.algorithm.sizes.parameters
        pull: Pull = self.algorithm.pull(job.given)
        weights, velocity = start[:trainable].clone(), torch.zeros(trainable, dtype=torch.float64)
        steps = sum(len(phase.edges) - 1 for phase in job.phases)
        own_loss = type(self.algorithm).loss is not Algorithm.loss
        for _ in range(steps):
            plain = device.objective(weights, self.algorithm, job.given) if own_loss else device.gradient(weights)
            gradient = plain + pull.to_start * (weights - start[:trainable]) + pull.decay * weights
            if pull.shift is not None:
                gradient = gradient + pull.shift
            velocity = self.momentum * velocity + gradient
            weights = weights - job.lr * velocity
        end = torch.cat([weights, torch.tensor(getattr(device, "moments", ()), dtype=torch.float64)])
        at_start = partial(device.gradient, start[:trainable])
        outputs = partial(device.labelled_outputs, weights) if hasattr(device, "labelled_outputs") else _no_samples
        return Trained(end - start, job.given, steps, job.lr, self.momentum, at_start, outputs)

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
        weights = self.state.weights
        return Arrivals(
            ids=ids,
            samples=sizes[ids],
            round=self.merged + 1,
            staleness=staleness,
            age_weight=np.where(staleness == 0, 1.0, age_weight),
            picked=np.arange(len(ids)) < picked,
            lr=np.array([job.lr for job in jobs]),
            began=np.array([*ids[staleness == 0], *failed], dtype=np.int64),
            all_samples=sizes,
            class_counts=np.array([getattr(self.devices[n], "class_counts", []) for n in ids], dtype=np.int64),
            round_lr=self.lr(self.merged + 1) if callable(self.lr) else self.lr,
            updates=torch.stack([end.update for end in ends]) if ends else weights.new_empty((0, len(weights))),
            separate=[end.update for end in ends],
            starts=[job.given["start"] for job in jobs],
            up={name: [what.up[name] for what in sent] for name in (sent[0].up if sent else ())},
        )


def _no_samples() -> NoReturn:
    raise AssertionError("a device with a loss in closed form has no samples")


def with_and_without_buffers(kind: type[Algorithm]) -> tuple[Play, Play]:
    """A play of two devices with two moments each and one without any, after a late update of uneven weight."""
    devices = (Quadratic(1.0, moments=(10.0, 1.0)), Quadratic(-2.0, 3.0, moments=(1.0, 5.0)))
    plays = Play(kind, devices, start=(0.0, 5.0, 5.0)), Play(kind, TWO)
    for play in plays:
        early, late = play.begin(0, 1)
        play.merge([early])
        play.merge([*play.begin(0), late], alpha=[0.2, 0.9])
    return plays


def _copies(state: State) -> dict[str, Any]:
    """Copies of all tensors of a state, by the name of their field."""
    fields: dict[str, Any] = {}
    for name, value in vars(state).items():
        entries = value if isinstance(value, dict) else {"": value}
        fields |= {f"{name} {key}": entry.clone() for key, entry in entries.items() if isinstance(entry, Tensor)}
    return fields
