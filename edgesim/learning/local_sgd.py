"""The inner loop of local training: SGD with momentum on cross-entropy (FedTeddi, eq. 2)."""

import itertools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from edgesim.learning.flat import FlatModel
from edgesim.learning.tensors import DeviceData
from edgesim.selection.view import Integers

_SAMPLES_AT_ONCE = 2048


@dataclass(frozen=True)
class Progress:
    """How training went, measured on the samples as they were trained on."""

    loss: float
    """Mean over samples."""
    accuracy: float
    first_bad_step: int | None
    """The first step, from 1, whose loss is not finite."""


def train(
    model: FlatModel,
    data: DeviceData,
    samples: Integers,
    edges: Integers,
    lr: float,
    momentum: float,
    velocity: Tensor,
) -> Progress:
    """Run the steps whose samples lie between successive edges, [steps + 1].

    Weights [P] and velocity [trainable] change in place.

    The update is that of `torch.optim.SGD`: velocity <- momentum velocity + gradient; w <- w - lr velocity.
    """
    model.module.train()
    index = data.index(samples)
    weights, gradient = model.weights[: model.trainable], model.gradient
    losses, hits = [], []
    for first, last in _chunks(edges.tolist()):
        images, labels = data.train(index[first[0] : last[-1]])
        images = model.inputs(images)
        for start, stop in zip(first, last, strict=True):
            part = slice(start - first[0], stop - first[0])
            logits = model.module(images[part])
            loss = F.cross_entropy(logits, labels[part])
            gradient.zero_()
            loss.backward()  # type: ignore[no-untyped-call]
            velocity.mul_(momentum).add_(gradient)
            weights.add_(velocity, alpha=-lr)
            losses.append(loss.detach())
            hits.append(logits.detach().argmax(1) == labels[part])
    step_losses = torch.stack(losses).double().cpu()
    bad = (~step_losses.isfinite()).nonzero()
    sizes = torch.from_numpy(edges[1:] - edges[:-1]).double()
    return Progress(
        loss=float(step_losses @ sizes / sizes.sum()),
        accuracy=float(torch.cat(hits).double().mean()),
        first_bad_step=int(bad[0]) + 1 if len(bad) else None,
    )


def _chunks(edges: list[int]) -> list[tuple[list[int], list[int]]]:
    """Whole steps, in chunks whose images fit in memory together: (starts, stops) of each chunk."""
    chunks: list[tuple[list[int], list[int]]] = []
    for start, stop in itertools.pairwise(edges):
        if not chunks or stop - chunks[-1][0][0] > _SAMPLES_AT_ONCE:
            chunks.append(([], []))
        chunks[-1][0].append(start)
        chunks[-1][1].append(stop)
    return chunks
