"""The inner loop of local training: SGD with momentum, or Adam, on cross-entropy (FedTeddi, eq. 2)."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.learning import dropout
from edgesim.learning.algorithms.records import Pull
from edgesim.learning.descent import Descent
from edgesim.learning.epoch_tests import EpochTests
from edgesim.learning.flat import FlatModel
from edgesim.learning.image_loader import ImageLoader
from edgesim.learning.jobs import Optimiser
from edgesim.learning.objective import LocalObjective

_NEWEST_STEP = 0.2


@dataclass(frozen=True)
class TrainingProgress:
    """Losses and accuracy of the measured steps of a job, on their samples as they were trained on."""

    loss: float
    """Mean over samples."""
    accuracy: float
    loss_rms: float
    """Moving root mean square of single samples' losses (`moving_rms`)."""
    first_bad_step: int | None
    """The first of all steps, from 1, whose loss is not finite."""
    epoch_accuracies: tuple[float, ...]
    """Accuracy of each epoch; empty where epochs are not measured."""


def train(
    model: FlatModel,
    loader: ImageLoader,
    edges: Integers,
    optimiser: Optimiser,
    velocity: Tensor,
    seed: int,
    pull: Pull = Pull(),  # noqa: B008 - it cannot change
    objective: LocalObjective | None = None,
    rows: Tensor | None = None,
    measured: Booleans | None = None,
    tests: EpochTests | None = None,
) -> TrainingProgress:
    """Run the steps whose samples lie between successive edges, [steps + 1]; ``measured`` [steps] or all count.

    Weights [P] and velocity [trainable] change in place; the seed decides the dropout masks. ``tests``, if any, measure
    the epochs.

    The gradient is that of an objective, with the `Step.rows` of the samples, [n], if they have any, else of
    cross-entropy; `TrainingProgress` holds cross-entropy in either case.
    The update is that of `edgesim.learning.descent.Descent`.
    """
    model.module.train()
    weights, gradient = model.weights[: model.trainable], model.gradient
    descent = Descent(weights[None], gradient[None], velocity[None], weights[None], [optimiser], [pull])
    bounds = edges.tolist()
    losses, answered, tested = [], [], []
    pauses = tests.after if tests else ()
    for chunk in loader.chunks(bounds):
        origin = bounds[chunk.start]
        images, labels = loader.take(slice(origin, bounds[chunk.stop]))
        outputs = []
        parts = [slice(bounds[step] - origin, bounds[step + 1] - origin) for step in chunk]
        taught = objective.taught([images[part] for part in parts]) if objective else []
        for step, part in zip(chunk, parts, strict=True):
            model.masks.begin(partial(dropout.key, seed, step))
            if objective is None:
                with model.autocast():
                    logits = model.module(images[part])
                loss = F.cross_entropy(logits.to(model.dtype), labels[part])
            else:
                of_step = None if rows is None else rows[bounds[step] : bounds[step + 1]]
                logits, loss = objective(images[part], labels[part], taught[step - chunk.start], step, of_step)
            outputs.append(logits.detach())
            gradient.zero_()
            loss.backward()  # type: ignore[no-untyped-call]
            descent.step()
            if tests is not None and step + 1 in pauses:
                tested.append(tests.accuracy())
        answers = torch.cat(outputs)
        losses.append(F.cross_entropy(answers.to(model.dtype), labels, reduction="none"))
        answered.append(answers.argmax(1) == labels)
    single, hit = torch.cat(losses).double().cpu().numpy(), torch.cat(answered)
    bad = np.flatnonzero(~np.isfinite(_step_means(single, edges)))
    accuracies = tuple(tested)
    if tests is not None and not accuracies:
        hits = np.add.reduceat(hit.cpu().numpy().astype(np.int64), edges[:-1])
        accuracies = tests.training_accuracies(np.diff(edges), hits)
    if measured is not None:
        among = np.repeat(measured, np.diff(edges))
        single, hit = single[among], hit[torch.from_numpy(among).to(hit.device)]
        edges = np.append(0, np.cumsum(np.diff(edges)[measured]))
    return TrainingProgress(
        loss=float(single.mean()),
        accuracy=float(hit.double().mean()),
        loss_rms=moving_rms(_step_means(single**2, edges)),
        first_bad_step=int(bad[0]) + 1 if len(bad) else None,
        epoch_accuracies=accuracies,
    )


def moving_rms(mean_squares: Floats) -> float:
    """Root of the moving mean, over the steps of a job, of the mean square loss of a step's samples, [steps].

    The first step starts the mean; every further one enters with weight 0.2 (Lai et al., "Oort", OSDI 2021, eq. 2,
    measured while training as its code does).
    """
    first, *further = mean_squares.tolist()
    mean = first
    for square in further:
        mean += _NEWEST_STEP * (square - mean)
    return math.sqrt(mean)


def _step_means(values: Floats, edges: Integers) -> Floats:
    """Means over the samples of each step, [steps], of values [n] in order of use."""
    return np.asarray(np.add.reduceat(values, edges[:-1]) / np.diff(edges))
