"""Training on the server: the run's model, the public images and random numbers, for algorithms."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import vmap
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from edgesim.base.arrays import Integers
from edgesim.config import LearningConfig
from edgesim.learning import dropout
from edgesim.learning.algorithms.records import Frozen, Outputs
from edgesim.learning.batches import least_batch
from edgesim.learning.drift.holdings import Holdings
from edgesim.learning.flat import FlatModel
from edgesim.learning.model_pool import frozen
from edgesim.learning.rates import rate_in
from edgesim.learning.tensors import DeviceData
from edgesim.streams import Streams

Stepper = tuple[Optimizer, LRScheduler | None]


@dataclass(eq=False)
class Workbench:
    """Data and passes with which a server trains; samples are indices into the training set.

    Each call leaves other weights in the model.
    """

    model: FlatModel
    data: DeviceData
    public: Integers
    """Images that server and devices all have, [m]; `edgesim.learning.datasets.public` says in which order."""
    validation: Integers
    """Labelled images that the server alone has (``data.validation_per_class``)."""
    held: Holdings
    streams: Streams
    learning: LearningConfig
    round: int
    """Round of the run; 0 before the first."""
    room_bytes: int
    """Memory for passes of frozen models."""
    opens_frame: bool = False
    """Whether the round is the first of a frame."""

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        return self.data.image_shape

    @property
    def private_count(self) -> int:
        """Number of samples of all devices."""
        return int(self.held.sizes.sum())

    def labels(self, samples: Integers) -> Tensor:
        """Labels of training samples, [n]."""
        return self.data.train_labels[self.data.index(samples)]

    def heads(self, models: Iterable[Tensor]) -> Callable[[Tensor], Tensor]:
        """Last layers of S models of weights [P]: a function from latents [n, F] to logits [S, n, classes].

        Only the latents have a gradient.
        """
        model, parts = self.model, defaultdict[str, list[Tensor]](list)
        for weights in models:
            for name, tensor in model.of_head(dict(zip(model.names, model.split(weights), strict=True))).items():
                # A view would keep the whole model in memory.
                parts[name].append(tensor.clone())
        stacked = {name: torch.stack(tensors) for name, tensors in parts.items()}
        return lambda latents: vmap(partial(model.head_logits, latents=latents))(stacked)

    def batches(self, samples: Integers) -> list[Integers]:
        """Samples in batches of the size of the devices' local training (the least of the run), in their order."""
        size = least_batch(self.learning)
        return np.split(samples, range(size, len(samples), size))

    def outputs(self, weights: Tensor, batches: Sequence[Integers]) -> Iterator[Outputs]:
        """Outputs of a model of weights [P] on each batch, in evaluation mode and without gradient."""
        model = self.model
        model.load(weights)
        model.module.eval()
        for batch in batches:
            images = self._images(batch)
            with torch.no_grad():
                yield model.outputs(images)

    def gradients(self, weights: Tensor, batches: Sequence[Integers]) -> Iterator[list[Tensor]]:
        """Gradient of the mean cross-entropy of each batch at weights [P], as tensors [L], in evaluation mode.

        Each gradient is valid until the next one is computed.
        """
        model = self.model
        model.load(weights)
        model.module.eval()
        for batch in batches:
            model.gradient.zero_()
            F.cross_entropy(model.module(self._images(batch)), self.labels(batch)).backward()  # type: ignore[no-untyped-call]
            yield model.split(model.gradient)

    def inputs(self, images: Tensor) -> Tensor:
        """Inputs of the model from images of brightness 0 to 1, [n, C, H, W], with gradient."""
        return self.model.inputs(self.data.of_brightness(images))

    def frozen(self, models: Sequence[Tensor]) -> Frozen:
        """Models of weights [P] in evaluation mode; as many small dense nets at once as have room, others in turn."""
        return frozen(self.model, models, self.image_shape, self.room_bytes)

    def fit(
        self,
        weights: Tensor,
        batches: Sequence[Integers | Tensor],
        loss: Callable[[Tensor, int], Tensor],
        steps: Callable[[Sequence[nn.Parameter]], Stepper] | None = None,
        clip_norm: float | None = None,
    ) -> Tensor:
        """Weights [P] after a step on each batch of samples or of `inputs`, in training mode, images not augmented.

        ``loss`` takes logits [n, C] and the number of the step, from 0. ``steps`` makes the optimiser and the schedule
        of its learning rate; gradients are at most ``clip_norm`` long. Without ``steps`` both are those of the devices'
        local training in this round.
        """
        model = self.model
        if steps is None:
            steps, clip_norm = self._local_steps, self.learning.clip_norm
        model.load(weights)
        model.module.train()
        optimiser, schedule = steps(model.parameters())
        seed = int(self.streams.seeds("server-dropout", self.round))
        for step, batch in enumerate(batches):
            model.masks.begin(partial(dropout.key, seed, step))
            model.gradient.zero_()
            images = batch if isinstance(batch, Tensor) else self._images(batch)
            loss(model.module(images), step).backward()  # type: ignore[no-untyped-call]
            if clip_norm is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
            optimiser.step()
            if schedule is not None:
                schedule.step()
        return model.snapshot()

    def _local_steps(self, parameters: Sequence[nn.Parameter]) -> Stepper:
        learning = self.learning
        rate = rate_in(learning, max(1, self.round))
        if learning.optimiser == "adam":
            return torch.optim.Adam(parameters, rate, weight_decay=learning.weight_decay), None
        return torch.optim.SGD(parameters, rate, learning.momentum, weight_decay=learning.weight_decay), None

    def _images(self, samples: Integers) -> Tensor:
        images, _ = self.data.train(self.data.index(samples))
        return self.model.inputs(images)
