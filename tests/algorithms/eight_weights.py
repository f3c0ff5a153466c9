"""Three devices that train one net of eight weights, logits = H tanh(A x); w is A by rows, then H by rows.

One step takes all samples of a device, at a learning rate of 0.5; two steps a round. Device 0 is away in the second
round, and device 2 comes new in it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Outputs, Step
from edgesim.learning.datasets import Dataset
from edgesim.learning.drift.frames import Framed
from edgesim.learning.drift.holdings import Frame
from edgesim.learning.federation import Federation

START = (0.5, -0.3, 0.2, 0.4, 0.6, -0.1, -0.2, 0.3)
ROUNDS = ((0, 1), (1, 2), (0, 2))


@dataclass(frozen=True)
class Holder:
    """A device with images of two pixels and their labels."""

    images: Sequence[tuple[float, float]]
    labels: Sequence[int]

    sizes = (2, 2)
    """Classes, and features of the net."""
    tensors = (4, 4)
    """Numbers of its matrices."""

    @property
    def class_counts(self) -> list[int]:
        """Images of each class."""
        return [self.labels.count(label) for label in range(2)]

    @property
    def samples(self) -> int:
        """How many images it holds."""
        return len(self.labels)

    def labelled_outputs(self, weights: Tensor) -> tuple[Outputs, Tensor]:
        """What a model makes of its images, and their labels."""
        return self.outputs(weights), torch.tensor(self.labels)

    def gradient(self, weights: Tensor) -> Tensor:
        """Of its mean cross-entropy, [8]."""
        weights = weights.clone().requires_grad_()
        loss = functional.cross_entropy(self.outputs(weights).logits, torch.tensor(self.labels))
        return torch.autograd.grad(loss, weights)[0]

    def objective(
        self, weights: Tensor, local: LocalHalf, given: Mapping[str, Tensor], rows: np.ndarray | None = None
    ) -> Tensor:
        """Gradient of the mean of a local half's own loss, [8]; ``rows`` of its images in tables of what is given."""
        weights = weights.clone().requires_grad_()
        teachers = {name: self.outputs(given[name]) for name in local.teachers if len(given[name])}
        others = {name: tensor for name, tensor in given.items() if name != "start" and name not in teachers}
        share = torch.full((self.samples,), 1 / self.samples, dtype=torch.float64)
        last = weights.view(2, 2, 2)[1]
        head, about = partial(functional.linear, weight=last), None if rows is None else torch.from_numpy(rows)
        step = Step(self.outputs(weights), teachers, torch.tensor(self.labels), share, others, head, (12, 34), about)
        return torch.autograd.grad(local.loss(step).mean(), weights)[0]

    def outputs(self, weights: Tensor) -> Outputs:
        """Logits and, as features, what tanh gives, of the images."""
        first, last = weights.view(2, 2, 2)
        features = torch.tanh(torch.tensor(self.images, dtype=torch.float64) @ first.T)
        return Outputs(features @ last.T, features)


THREE = (
    Holder([(1, 0), (0, 1), (1, 1), (-0.5, -1)], [0, 1, 0, 0]),
    Holder([(-1, 1), (2, -1)], [1, 1]),
    Holder([(0.5, -1)], [0]),
)


PUBLIC = Holder([(1, -1), (-1, -1), (0.5, 2)], [0, 0, 0])


@dataclass
class Bench:
    """What a server trains the net with, on the images of a holder."""

    of: Holder
    round: int = 0
    private_count: int = 7

    @property
    def public(self) -> np.ndarray:
        """All of its images."""
        return np.arange(self.of.samples)

    def batches(self, samples: np.ndarray) -> list[np.ndarray]:
        """All at once."""
        return [samples]

    def part(self, batch: np.ndarray) -> Holder:
        """A holder of some of its images, by their numbers."""
        return Holder([self.of.images[row] for row in batch], [self.of.labels[row] for row in batch])

    def heads(self, models: Iterable[Tensor]) -> Callable[[Tensor], Tensor]:
        """The last matrices of models."""
        last = torch.stack([weights.view(2, 2, 2)[1] for weights in models])
        return lambda latents: latents @ last.transpose(1, 2)

    def outputs(self, weights: Tensor, batches: Sequence[np.ndarray]) -> Iterator[Outputs]:
        """What the net makes of each batch."""
        return (self.part(batch).outputs(weights) for batch in batches)

    def gradients(self, weights: Tensor, batches: Sequence[np.ndarray]) -> Iterator[list[Tensor]]:
        """Of both matrices."""
        return (list(self.part(batch).gradient(weights).split(4)) for batch in batches)

    def inputs(self, images: Tensor) -> Tensor:
        """As they are."""
        return images

    def frozen(self, models: Sequence[Tensor]) -> Callable[[Tensor], Iterator[tuple[slice, Outputs]]]:
        """Outputs of the first model and then those of all others."""

        def play(images: Tensor) -> Iterator[tuple[slice, Outputs]]:
            for part in (slice(0, 1), slice(1, len(models))):
                first, last = torch.stack(list(models)).view(-1, 2, 2, 2)[part].unbind(1)
                features = torch.tanh(images @ first.transpose(1, 2))
                if len(features):
                    yield part, Outputs(features @ last.transpose(1, 2), features)

        return play

    def fit(self, weights, batches, loss, steps=None, clip_norm=None) -> Tensor:
        """Steps of an optimiser on the eight weights, by default as devices take them."""
        own = weights.clone().requires_grad_()
        optimiser, schedule = steps([own]) if steps else (torch.optim.SGD([own], 0.5), None)
        for step, batch in enumerate(batches):
            optimiser.zero_grad()
            if isinstance(batch, Tensor):
                ((_, outputs),) = self.frozen([own])(batch)
                logits = outputs.logits[0]
            else:
                logits = self.part(batch).outputs(own).logits
            loss(logits, step).backward()
            if clip_norm is not None:
                torch.nn.utils.clip_grad_norm_([own], clip_norm)
            optimiser.step()
            if schedule is not None:
                schedule.step()
        return own.detach()


def federation_of(images: np.ndarray | None = None, labels: np.ndarray | None = None) -> Federation:
    """The three devices' images, [n, 1, 1, 2], as a data set; tested on other images, or on the same."""
    own = np.array([image for holder in THREE for image in holder.images], dtype=np.float64).reshape(-1, 1, 1, 2)
    own_labels = np.array([label for holder in THREE for label in holder.labels])
    tested = own.copy() if images is None else images
    tested_labels = own_labels.copy() if labels is None else labels
    dataset = Dataset("three", own_labels, tested_labels, 2, (1, 1, 2), lambda: (own, tested), fixed_scale=1.0)
    sizes, counts = (np.array([getattr(holder, name) for holder in THREE]) for name in ("samples", "class_counts"))
    return Federation(dataset, Framed([Frame(sizes, counts, np.arange(2), np.arange(7))] * 2))


def module() -> nn.Module:
    """The net as a module of torch, with the weights of the start."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False), nn.Tanh(), nn.Linear(2, 2, bias=False)).double()
    nn.utils.vector_to_parameters(torch.tensor(START, dtype=torch.float64), net.parameters())
    return net


def check_sum(weights: Tensor) -> float:
    """w_1 + 2 w_2 + ... + 8 w_8."""
    return float(weights @ torch.arange(1.0, 9.0, dtype=torch.float64))
